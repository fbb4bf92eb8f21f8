"""Calibration of dispatch on this device: times of all paths for random requests, and the coefficients of the cost model.

Every path that covers a request is called from Python, in turns; the coefficients that fit these times best are the
profile of the device, by which attend() selects from then on. It lies in the user's cache (~/.cache/regard/profiles), with
its digest; remove the file to go back to the profile of the package. A decision depends on the profile: finish runs that are
to be resumed exactly before calibrating. On one thread of a CPU the processor's time is measured, which other load of the
machine does not lengthen.

    regard bench calibrate                       at most three minutes, and one more for the fit
    regard bench calibrate --requests 100        quicker, and less exact
"""

import argparse
from pathlib import Path

import torch

import _bare  # noqa: F401
from regard.attention.cost import find_own_path, write_profile
from regard.kernels.calibration.fit import fit_profile
from regard.kernels.calibration.run import calibrate, name_device, read_rows, warm_kernels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", choices=["cpu", "cuda"], default=usual)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--requests", type=int, default=400, help="requests to measure")
    parser.add_argument("--seconds", type=float, default=170.0, help="no more are measured after so many")
    parser.add_argument("--threads", type=int, help="of the CPU; without it, as many as PyTorch takes")
    parser.add_argument("--out", type=Path, help="write the profile here, not into the user's cache")
    parser.add_argument("--rows", type=Path, help="write the measurements to this file too, a JSON object a line")
    parser.add_argument("--fit", type=Path, nargs="+", help="fit the measurements of such files, and measure nothing")
    parser.add_argument("--name", help="name of the device of such files")
    parser.add_argument("--warm", metavar="I/N", help="compile the kernels of every N-th request from I on, and stop")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.warm:
        first, step = map(int, options.warm.split("/"))
        warm_kernels(options.device, options.seed, options.requests, (first, step), options.seconds)
        return
    if options.fit:
        rows = [row for path in options.fit for row in read_rows(path)]
        device = options.name or name_device(options.device)
        profile = fit_profile(device, rows, options.device)
        write_profile(options.out or find_own_path(device), profile)
        print(f"{len(rows)} measurements; the profile is {options.out or find_own_path(device)}")
        return
    print(f"calibrating {name_device(options.device)}: at most {options.seconds:.0f} s")
    calibrate(options.device, options.seed, options.requests, options.seconds, options.out, options.rows)


if __name__ == "__main__":
    main()
