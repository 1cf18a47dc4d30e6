"""The command line: one file per subcommand, all in the table of `sabre.cli.main`."""
