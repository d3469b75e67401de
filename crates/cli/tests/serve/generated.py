# A client that a generator has made from the document, and nothing else of ours: generated.py URL KEY
import sys

from hotcell_client import AuthenticatedClient
from hotcell_client.api.default import get_records, get_runs_id, post_runs
from hotcell_client.models import HttpProblem, LowerLimits, RecordList, RecordStatus, Run, RunOfCode, RunOfCommand, RunOfFiles
from hotcell_client.models import RunOfFilesFiles, Status

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])

run = post_runs.sync(client=client, body=RunOfCode(code="print(6*7)", limits=LowerLimits(wall_ms=10000)))
assert isinstance(run, Run), run
assert (run.outcome.status, run.outcome.stdout, run.outcome.failure_class) == (Status.PASS, "42\n", None), run

files = RunOfFilesFiles.from_dict({"main.py": "import other; print(other.word)", "other.py": "word = 'two files'"})
assert post_runs.sync(client=client, body=RunOfFiles(files=files, entry="main.py")).outcome.stdout == "two files\n"

asked = post_runs.sync_detailed(client=client, body=RunOfCommand(command=["sleep", "60"]), wait=False)
assert asked.status_code == 202 and asked.parsed.outcome is None, asked

again = get_runs_id.sync(run.id, client=client)
assert again.outcome.to_dict() == run.outcome.to_dict(), again

records = get_records.sync(client=client, status=RecordStatus.COMPLETED, limit=10)
assert isinstance(records, RecordList) and run.id in [r.record_id for r in records.records], records

unknown = get_runs_id.sync("nothing-of-this-name", client=client)
assert isinstance(unknown, HttpProblem) and (unknown.status, unknown.type_) == (404, "urn:hotcell:problem:not-found"), unknown
wrong = post_runs.sync(client=client, body=RunOfCode(code="", language="klingon"))
assert isinstance(wrong, HttpProblem) and (wrong.status, wrong.field) == (422, "language"), wrong
print("all is as the document says")
