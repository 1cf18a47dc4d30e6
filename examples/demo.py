"""Train a sampler for the 8 x 8 Ising model at its critical point and compare it with Kaufman's exact log Z."""

import shutil
from pathlib import Path

import sabre

target = sabre.targets.Ising(size=8, beta=0.4407)
run_dir = Path("runs/demo")
shutil.rmtree(run_dir, ignore_errors=True)

run = sabre.train(target, method="tb+replay+mcmc", net="causal", steps=1500, seed=0, run_dir=run_dir)
scores = run.evaluate(num_samples=8192)
run.report()
report = shutil.copy(run_dir / "report.html", "report.html")

print(f"\n{target!r} on {target.dim} spins, {run.num_evaluations:,} energy evaluations\n")
print(scores)
exact = target.log_z_exact
print(f"\nlog Z is off by {scores.log_z.value - exact:+.4f}, ELBO by {scores.elbo.value - exact:+.4f},")
print(f"EUBO by {scores.eubo.value - exact:+.4f}; curves and samples are in {report}")
