"""Promises of the audit log: durable, chained, complete, without secrets."""

from tests.mutants.mutant import Mutant

_WRITER_OLD = """            begun = time.monotonic()
            self._connection.execute("COMMIT")
            self._commit_took = time.monotonic() - begun
        except StoreError as error:
            self._roll_back(before)
            self._fail(batch, error)
            return
        for request in batch:
            if request.error is None:
                request.future.set_result(request.result)
            else:
                request.future.set_exception(request.error)
"""
_WRITER_NEW = """        except StoreError as error:
            self._roll_back(before)
            self._fail(batch, error)
            return
        for request in batch:
            if request.error is None:
                request.future.set_result(request.result)
            else:
                request.future.set_exception(request.error)
        self._connection.execute("COMMIT")
"""

MUTANTS = (
    Mutant(
        promise="what is told is committed",
        file="audit_log/writer.py",
        old=_WRITER_OLD,
        new=_WRITER_NEW,
        test="tests/audit_log",
    ),
    Mutant(
        promise="a commit is on the disk",
        file="audit_log/database.py",
        old='("synchronous", 2)',
        new='("synchronous", 0)',
        test="tests/audit_log/test_opening.py",
    ),
    Mutant(
        promise="one bot for one database",
        file="audit_log/database.py",
        old="        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        new="        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        test="tests/audit_log/test_opening.py",
    ),
    Mutant(
        promise="no row of the ledger is changed",
        file="audit_log/schema/0001_ledger.sql",
        old="BEFORE UPDATE ON ledger\nBEGIN SELECT RAISE(ABORT,",
        new="BEFORE UPDATE ON ledger WHEN 0\nBEGIN SELECT RAISE(ABORT,",
        test="tests/audit_log/test_tampering.py",
    ),
    Mutant(
        promise="no row of the ledger is removed",
        file="audit_log/schema/0001_ledger.sql",
        old="BEFORE DELETE ON ledger\nBEGIN SELECT RAISE(ABORT,",
        new="BEFORE DELETE ON ledger WHEN 0\nBEGIN SELECT RAISE(ABORT,",
        test="tests/audit_log/test_tampering.py",
    ),
    Mutant(
        promise="each record names the one before",
        file="audit_log/chain.py",
        old="""            and text.endswith(b',"prev":"%b","seq":%d,"v":1}' % (prev, row_seq))\n""",
        new="",
        test="tests/audit_log/test_chain.py",
    ),
    Mutant(
        promise="a changed text is found",
        file="audit_log/chain.py",
        old="            and sha256(text).hexdigest().encode() == stored\n",
        new="",
        test="tests/audit_log/test_chain.py",
    ),
    Mutant(
        promise="a cut tail is found with the anchor",
        file="audit_log/verify.py",
        old="        findings += [Break(seq=anchor.seq, problem=said)] if said else []",
        new="        findings += []",
        test="tests/audit_log/test_tampering.py",
    ),
    Mutant(
        promise="rebuild makes the tables from the records alone",
        file="audit_log/replay.py",
        old="    drop_tables(cursor, projectors)\n",
        new="",
        test="tests/audit_log/test_rebuild.py",
    ),
    Mutant(
        promise="every table of the engine is made again",
        file="runbooks/projection.py",
        old='        "marks",\n',
        new="",
        test="tests/runbooks/engine/test_rails.py",
    ),
    Mutant(
        promise="a restored ledger acts only after a person confirmed",
        file="audit_log/restoration.py",
        old='MAY_ACT = """SELECT NOT EXISTS',
        new='MAY_ACT = """SELECT 1 OR NOT EXISTS',
        test="tests/audit_log/test_restore.py",
    ),
    Mutant(
        promise="every denial is recorded",
        file="audit_log/gate.py",
        old="            self._count(_key(question), _event(question, decision))",
        new="            pass",
        test="tests/audit_log/test_gate.py",
    ),
    Mutant(
        promise="no secret is stored",
        file="audit_log/encoding.py",
        old="    if not redactor.is_clean(inner):",
        new="    if not inner:",
        test="tests/audit_log",
    ),
    Mutant(
        promise="a secret is known in base64 too",
        file="config/redaction.py",
        old="            found.extend(_widened(text, span) for span in _occurrences(text, core))",
        new="            found.extend(())",
        test="tests/config/test_redaction.py",
    ),
    Mutant(
        promise="a full disk still takes outcomes",
        file="audit_log/writer.py",
        old="            again = [r for r in batch if r.urgency is Urgency.OUTCOME and not r.retried]",
        new="            again = []",
        test="tests/audit_log",
    ),
)
