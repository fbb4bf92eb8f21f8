"""Compiling side by side, with programs that say what they were asked for; tests/decoding/engines/cuda/counted.py has Triton's own."""

import threading
import time

import pytest
import torch

from regard.kernels.runtime import compile as together

pytest.importorskip("triton", reason="Triton is for Linux")
CPU = torch.device("cpu")


class Program:
    """As Triton makes one of a function."""

    def __init__(self, fails=0):
        self.started, self.asked, self.compiled, self.loaded, self.fails = [], [], [], [], fails

    def __getitem__(self, grid):
        return lambda *given, **options: self.started.append((grid, given, options))

    def warmup(self, *given, grid, **options):
        """What JITFunction does under a mode that compiles elsewhere."""
        from triton.runtime._async_compile import active_mode

        self.asked.append((grid, given, options))
        return active_mode.get().submit((self, given), self.compile, lambda program: None)

    def compile(self):
        self.compiled.append(threading.current_thread())
        if len(self.compiled) <= self.fails:
            raise SystemError("AST constructor recursion depth mismatch (before=39, after=107)")
        return self

    def _init_handles(self):
        self.loaded.append(threading.current_thread())


def test_a_launch_starts_a_program():
    program = Program()
    together.launch(program, (2, 3), "data", 5, num_warps=4)
    assert program.started == [((2, 3), ("data", 5), {"num_warps": 4})]
    assert not program.asked


def test_a_launch_that_is_prepared_compiles_and_loads_in_a_thread_and_starts_nothing():
    one, two = Program(), Program()

    def work():
        together.launch(one, (2, 3), "data", 5, num_warps=4)
        together.launch(one, (2, 3), "data", 5, num_warps=4)
        together.launch(two, (1,))

    together.compile_kernels(work, CPU)
    assert one.asked == [((2, 3), ("data", 5), {"num_warps": 4})] * 2
    for program in (one, two):
        assert not program.started
        assert len(program.compiled) == len(program.loaded) == 1
        assert program.compiled == program.loaded != [threading.main_thread()]
    together.launch(two, (1,))
    assert two.started == [((1,), (), {})]


def test_programs_are_compiled_at_the_same_time():
    both = threading.Barrier(2, timeout=30)

    class Waiting(Program):
        def compile(self):
            both.wait()
            return super().compile()

    programs = Waiting(), Waiting()
    together.compile_kernels(lambda: [together.launch(each, (1,)) for each in programs], CPU)
    assert all(each.loaded for each in programs)
    assert programs[0].loaded != programs[1].loaded


@pytest.mark.parametrize(("fails", "tried", "loaded"), [(1, 2, 1), (100, together.RETRIES + 1, 0)])
def test_what_fails_is_tried_again_and_then_left_to_the_launch(fails, tried, loaded):
    program, other = Program(fails), Program()
    together.compile_kernels(lambda: [together.launch(each, (1,)) for each in (program, other)], CPU)
    assert (len(program.compiled), len(program.loaded), len(other.loaded)) == (tried, loaded, 1)
    together.launch(program, (1,))
    assert len(program.started) == 1


@pytest.mark.parametrize(("fails", "asked", "loaded"), [(1, 2, 1), (100, together.RETRIES + 1, 0)])
def test_a_kernel_that_fails_to_parse_beside_the_threads_is_tried_again(fails, asked, loaded):
    class Parsed(Program):
        def warmup(self, *given, grid, **options):
            if len(self.asked) < fails:
                self.asked.append((grid, given, options))
                raise SystemError("AST constructor recursion depth mismatch (before=66, after=233)")
            return super().warmup(*given, grid=grid, **options)

    program = Parsed()
    together.compile_kernels(lambda: together.launch(program, (1,)), CPU)
    assert (len(program.asked), len(program.loaded)) == (asked, loaded)


def test_functions_are_parsed_one_at_a_time(monkeypatch):
    from triton.runtime.jit import JITCallable

    parsing, overlaps = threading.Lock(), []

    def parse(function):
        overlaps.append(not parsing.acquire(blocking=False))
        time.sleep(0.01)
        parsing.release()
        if len(overlaps) == 1:
            raise SystemError("AST constructor recursion depth mismatch (before=39, after=107)")
        return function

    monkeypatch.setattr(JITCallable, "parse", parse)
    together.serialise_parsing.__wrapped__()
    threads = [threading.Thread(target=JITCallable.parse, args=(object(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps == [False] * 5  # one of four was parsed again


def test_a_failure_of_the_work_itself_is_none_and_what_was_asked_for_is_there():
    program = Program()

    def work():
        together.launch(program, (1,))
        raise RuntimeError("out of memory")

    together.compile_kernels(work, CPU)
    assert program.loaded


def test_one_who_is_interrupted_leaves_no_mode_behind():
    from triton.runtime._async_compile import active_mode

    class Stopped(together.CompilePool):
        def make(self, compiled):
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(together, "CompilePool", Stopped)
        with pytest.raises(KeyboardInterrupt):
            together.compile_kernels(lambda: together.launch(Program(), (1,)), CPU)
    assert active_mode.get() is None
    assert not together.PREPARING.get()
