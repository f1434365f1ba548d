CREATE TABLE ledger (
  seq INTEGER PRIMARY KEY NOT NULL,
  record TEXT NOT NULL,
  digest TEXT NOT NULL,
  at_us INTEGER GENERATED ALWAYS AS (json_extract(record, '$.at_us')) VIRTUAL,
  kind TEXT GENERATED ALWAYS AS (json_extract(record, '$.event.kind')) VIRTUAL,
  actor TEXT GENERATED ALWAYS AS (json_extract(record, '$.event.actor')) VIRTUAL,
  run TEXT GENERATED ALWAYS AS (json_extract(record, '$.event.run')) VIRTUAL,
  step TEXT GENERATED ALWAYS AS (json_extract(record, '$.event.step')) VIRTUAL,
  cluster TEXT GENERATED ALWAYS AS (json_extract(record, '$.event.cluster')) VIRTUAL,
  node TEXT GENERATED ALWAYS AS (json_extract(record, '$.event.node')) VIRTUAL,
  prev TEXT GENERATED ALWAYS AS (json_extract(record, '$.prev')) VIRTUAL
) STRICT

CREATE INDEX ledger_by_run ON ledger (run, seq) WHERE run IS NOT NULL

CREATE INDEX ledger_by_node ON ledger (node, seq) WHERE node IS NOT NULL

CREATE INDEX ledger_by_actor ON ledger (actor, seq)

CREATE INDEX ledger_by_time ON ledger (at_us)

CREATE TRIGGER ledger_is_never_updated BEFORE UPDATE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END

CREATE TRIGGER ledger_is_never_deleted BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END

CREATE TRIGGER ledger_never_forks BEFORE INSERT ON ledger
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM ledger)
  OR json_extract(NEW.record, '$.prev') IS NOT coalesce(
    (SELECT digest FROM ledger ORDER BY seq DESC LIMIT 1),
    '0000000000000000000000000000000000000000000000000000000000000000')
BEGIN SELECT RAISE(ABORT, 'a record must follow the last one'); END

CREATE TABLE settings (
  name TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL
) STRICT

CREATE TABLE people (
  id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL
) STRICT

CREATE TABLE people_identities (
  door TEXT NOT NULL,
  subject TEXT NOT NULL,
  id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  PRIMARY KEY (door, subject)
) STRICT
