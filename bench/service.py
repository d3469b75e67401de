"""The service on loopback, by wrk: what HTTP adds to a run, how many go, what sleeping ones and many requests cost."""

import concurrent.futures
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Runs at once, here and in the library that it is compared with.
AT_ONCE = 8
SLEEPERS = 500

TRUE = json.dumps({"command": ["/bin/true"]})
POST = f"""
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{TRUE}'
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format("measured %f %f %d %d %d\\n", latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    summary.requests, errors.status + errors.read + errors.write + errors.connect + errors.timeout, summary.duration))
end
"""


class Service:
    """One of its own, with a state of its own."""

    def __init__(self, hotcell, *flags):
        self.place = tempfile.mkdtemp(prefix="hotcell-bench-")
        os.chmod(self.place, 0o755)
        with open(f"{self.place}/post.lua", "w") as script:
            script.write(POST)
        words = [hotcell, "serve", "--listen", "127.0.0.1:0", "--state-dir", f"{self.place}/state", "--log-level", "error", *flags]
        self.child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        first = self.child.stdout.readline()
        found = re.search(r"http://([^,]+),", first)
        if not found:
            sys.exit(f"bench: the service does not start: {first}")
        self.address = found[1]

    def wrk(self, clients, seconds):
        """Milliseconds at p50 and p99, runs a second."""
        words = ["wrk", "-t", str(min(clients, 2)), "-c", str(clients), "-d", f"{seconds}s", "--timeout", "60s",
                 "-s", f"{self.place}/post.lua", f"http://{self.address}/v1/runs"]
        said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        p50, p99, requests, errors, micros = map(float, re.search(r"measured (.*)", said)[1].split())
        if errors or not requests:
            sys.exit(f"bench: wrk met {errors:.0f} errors: {said}")
        return p50, p99, requests / micros * 1e6

    def resident(self):
        """Of the service and all that it has started, in KiB."""
        pids, total = [self.child.pid], 0
        for pid in pids:
            try:
                for task in os.listdir(f"/proc/{pid}/task"):
                    pids.extend(map(int, open(f"/proc/{pid}/task/{task}/children").read().split()))
                total += sum(int(line.split()[1]) for line in open(f"/proc/{pid}/status") if line.startswith("RssAnon"))
            except OSError:
                continue
        return total

    def own(self):
        return next(int(line.split()[1]) for line in open(f"/proc/{self.child.pid}/status") if line.startswith("VmRSS"))

    def sleep(self, _):
        """A run that sleeps until everybody does. Its status."""
        to = http.client.HTTPConnection(self.address, timeout=300)
        to.request("POST", "/v1/runs", json.dumps({"command": ["sleep", "20"]}), {"Content-Type": "application/json"})
        return json.load(to.getresponse()).get("outcome", {}).get("status")

    def going(self):
        to = http.client.HTTPConnection(self.address, timeout=60)
        to.request("GET", "/metrics")
        found = re.search(r"^hotcell_cells (\d+)", to.getresponse().read().decode(), re.M)
        return int(found[1]) if found else 0

    def close(self):
        self.child.terminate()
        self.child.wait()
        shutil.rmtree(self.place)


def measure(rows, hotcell, lib, runs):
    service = Service(hotcell, "--concurrency", str(AT_ONCE), "--queue", "1000")
    try:
        service.wrk(AT_ONCE, 2)
        seconds = max(3, runs // 40)
        call = lib["cell_p50_us"] / 1e3
        for clients in (1, 8, 64, 256):
            p50, p99, a_second = service.wrk(clients, seconds)
            if clients == 1:
                rows.append(("a run over HTTP, p50", f"{p50:.2f} ms", f"{p50 - call:+.2f} ms to the library call ({call:.2f} ms)",
                             "at most +1 ms"))
            aim = "at least 0.8x" if clients == AT_ONCE else ""
            rows.append((f"{clients} clients of the service", f"{a_second:.0f} runs/s, p50 {p50:.1f}, p99 {p99:.1f} ms",
                         f"{a_second / lib['a_second']:.2f}x the library ({lib['a_second']:.0f} runs/s)", aim))
        before, many = service.own(), 0
        while many < 125 * runs:
            many += service.wrk(64, 10)[2] * 10
        rows.append((f"memory after {many:,.0f} more requests", f"{service.own() / 1024:.1f} MiB", f"{before / 1024:.1f} MiB before", "flat"))
    finally:
        service.close()
    service = Service(hotcell, "--concurrency", str(SLEEPERS), "--queue", "1000")
    try:
        before = service.resident()
        with concurrent.futures.ThreadPoolExecutor(SLEEPERS) as clients:
            asked = [clients.submit(service.sleep, n) for n in range(SLEEPERS)]
            most = 0
            while not all(one.done() for one in asked):
                if service.going() == SLEEPERS:
                    most = max(most, service.resident())
            answered = sum(one.result() == "pass" for one in asked)
        each = f"{(most - before) / SLEEPERS:.0f} KiB each" if most else "never all at once"
        rows.append((f"{SLEEPERS} runs that sleep at once", f"{answered} answered", each, "all"))
    finally:
        service.close()
