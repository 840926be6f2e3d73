-- +goose Up

-- The codes that the program knows: active ones of ISO 4217 with a minor unit. A test compares the two lists.
CREATE TABLE currencies (code text NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;

INSERT INTO currencies (code)
WITH RECURSIVE list (codes) AS (SELECT
    'BIFCLPDJFGNFISKJPYKMFKRWPYGRWFUGXUYIVNDVUVXAFXOFXPF' ||
    'AEDAFNALLAMDAOAARSAUDAWGAZNBAMBBDBDTBMDBNDBOBBOVBRLBSDBTNBWPBYNBZDCADCDFCHECHFCHWCNYCOPCOUCRCCUPCVECZKDKKDOPDZD' ||
    'EGPERNETBEURFJDFKPGBPGELGHSGIPGMDGTQGYDHKDHNLHTGHUFIDRILSINRIRRJMDKESKGSKHRKPWKYDKZTLAKLBPLKRLRDLSLMADMDLMGAMKD' ||
    'MMKMNTMOPMRUMURMVRMWKMXNMXVMYRMZNNADNGNNIONOKNPRNZDPABPENPGKPHPPKRPLNQARRONRSDRUBSARSBDSCRSDGSEKSGDSHPSLESOSSRD' ||
    'SSPSTNSVCSYPSZLTHBTJSTMTTOPTRYTTDTWDTZSUAHUSDUSNUYUUZSVEDVESWSTXADXCDXCGYERZARZMWZWG' ||
    'BHDIQDJODKWDLYDOMRTND' ||
    'CLFUYW'
), letters (at) AS (SELECT 1 UNION ALL SELECT at + 3 FROM letters, list WHERE at + 3 < length(codes))
SELECT substr(codes, at, 3) FROM letters, list;

-- What the program could not read is refused, whoever writes it: one such row by hand would keep an order from being
-- paid, or hide others from a list. Times are of the years 0 to 9999, which RFC 3339 can write. Lines are JSON in the
-- strict sense, whose objects have each member once: of two, SQLite reads the first and other readers the last.
-- +goose StatementBegin
CREATE TRIGGER orders_readable_insert BEFORE INSERT ON orders
WHEN NOT (
    EXISTS (SELECT 1 FROM currencies WHERE code = NEW.currency)
    AND (NEW.attempt_currency IS NULL OR EXISTS (SELECT 1 FROM currencies WHERE code = NEW.attempt_currency))
    AND NEW.placed_at BETWEEN -62167219200000000 AND 253402300799999999
    AND coalesce(NEW.attempt_begun_at, 0) BETWEEN -62167219200000000 AND 253402300799999999
    AND coalesce(NEW.paid_at, 0) BETWEEN -62167219200000000 AND 253402300799999999
    AND coalesce(NEW.cancelled_at, 0) BETWEEN -62167219200000000 AND 253402300799999999
    AND json_valid(NEW.lines) AND (
        SELECT coalesce(min(type = 'object'
            AND (SELECT count(*) FROM json_each(line.value)) = 4
            AND coalesce(json_type(value, '$.sku') = 'text' AND json_type(value, '$.name') = 'text'
                AND json_type(value, '$.quantity') = 'integer' AND json_type(value, '$.unitPrice') = 'integer'
                AND json_extract(value, '$.quantity') BETWEEN 1 AND 9999
                AND json_extract(value, '$.unitPrice') BETWEEN 0 AND 9007199254740991, 0)), 0)
        FROM json_each(NEW.lines) AS line)
)
BEGIN
    SELECT RAISE(ABORT, 'constraint orders_readable: a currency, a time or the lines are none');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER orders_readable_update
BEFORE UPDATE OF currency, attempt_currency, placed_at, attempt_begun_at, paid_at, cancelled_at ON orders
WHEN NOT (
    EXISTS (SELECT 1 FROM currencies WHERE code = NEW.currency)
    AND (NEW.attempt_currency IS NULL OR EXISTS (SELECT 1 FROM currencies WHERE code = NEW.attempt_currency))
    AND NEW.placed_at BETWEEN -62167219200000000 AND 253402300799999999
    AND coalesce(NEW.attempt_begun_at, 0) BETWEEN -62167219200000000 AND 253402300799999999
    AND coalesce(NEW.paid_at, 0) BETWEEN -62167219200000000 AND 253402300799999999
    AND coalesce(NEW.cancelled_at, 0) BETWEEN -62167219200000000 AND 253402300799999999
)
BEGIN
    SELECT RAISE(ABORT, 'constraint orders_readable: a currency or a time is none');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER orders_readable_lines BEFORE UPDATE OF lines ON orders
WHEN NOT (
    json_valid(NEW.lines) AND (
        SELECT coalesce(min(type = 'object'
            AND (SELECT count(*) FROM json_each(line.value)) = 4
            AND coalesce(json_type(value, '$.sku') = 'text' AND json_type(value, '$.name') = 'text'
                AND json_type(value, '$.quantity') = 'integer' AND json_type(value, '$.unitPrice') = 'integer'
                AND json_extract(value, '$.quantity') BETWEEN 1 AND 9999
                AND json_extract(value, '$.unitPrice') BETWEEN 0 AND 9007199254740991, 0)), 0)
        FROM json_each(NEW.lines) AS line)
)
BEGIN
    SELECT RAISE(ABORT, 'constraint orders_readable: the lines are none');
END;
-- +goose StatementEnd

-- Whole and balanced they are already (journal_entries_balance_insert, journal_entries_balance_update).
-- +goose StatementBegin
CREATE TRIGGER journal_entries_readable_insert BEFORE INSERT ON journal_entries
WHEN NOT (
    EXISTS (SELECT 1 FROM currencies WHERE code = NEW.currency)
    AND NEW.service_date IS date(NEW.service_date)
    AND NEW.posted_at BETWEEN -62167219200000000 AND 253402300799999999
    AND json_valid(NEW.lines) AND NOT EXISTS (
        SELECT 1 FROM json_each(NEW.lines) AS line
        WHERE line.type <> 'object' OR (SELECT count(*) FROM json_each(line.value)) <> 3)
)
BEGIN
    SELECT RAISE(ABORT, 'constraint journal_entries_readable: the currency, a date or the lines are none');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER journal_entries_readable_update BEFORE UPDATE ON journal_entries
WHEN NOT (
    EXISTS (SELECT 1 FROM currencies WHERE code = NEW.currency)
    AND NEW.service_date IS date(NEW.service_date)
    AND NEW.posted_at BETWEEN -62167219200000000 AND 253402300799999999
    AND json_valid(NEW.lines) AND NOT EXISTS (
        SELECT 1 FROM json_each(NEW.lines) AS line
        WHERE line.type <> 'object' OR (SELECT count(*) FROM json_each(line.value)) <> 3)
)
BEGIN
    SELECT RAISE(ABORT, 'constraint journal_entries_readable: the currency, a date or the lines are none');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER idempotency_records_readable_insert BEFORE INSERT ON idempotency_records
WHEN NOT (
    NEW.created_at BETWEEN -62167219200000000 AND 253402300799999999
    AND NEW.lease_expires_at BETWEEN -62167219200000000 AND 253402300799999999
    AND coalesce(NEW.recover_from, 0) BETWEEN -62167219200000000 AND 253402300799999999
    AND coalesce(NEW.completed_at, 0) BETWEEN -62167219200000000 AND 253402300799999999
    AND coalesce(NEW.expires_at, 0) BETWEEN -62167219200000000 AND 253402300799999999
    AND NEW.disputed IN (0, 1)
)
BEGIN
    SELECT RAISE(ABORT, 'constraint idempotency_records_readable: a time or whether it is disputed is none');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER idempotency_records_readable_update BEFORE UPDATE ON idempotency_records
WHEN NOT (
    NEW.created_at BETWEEN -62167219200000000 AND 253402300799999999
    AND NEW.lease_expires_at BETWEEN -62167219200000000 AND 253402300799999999
    AND coalesce(NEW.recover_from, 0) BETWEEN -62167219200000000 AND 253402300799999999
    AND coalesce(NEW.completed_at, 0) BETWEEN -62167219200000000 AND 253402300799999999
    AND coalesce(NEW.expires_at, 0) BETWEEN -62167219200000000 AND 253402300799999999
    AND NEW.disputed IN (0, 1)
)
BEGIN
    SELECT RAISE(ABORT, 'constraint idempotency_records_readable: a time or whether it is disputed is none');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER simulator_charges_readable_insert BEFORE INSERT ON simulator_charges
WHEN NEW.booked_at NOT BETWEEN -62167219200000000 AND 253402300799999999
BEGIN
    SELECT RAISE(ABORT, 'constraint simulator_charges_readable: the time is none');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER simulator_charges_readable_update BEFORE UPDATE OF booked_at ON simulator_charges
WHEN NEW.booked_at NOT BETWEEN -62167219200000000 AND 253402300799999999
BEGIN
    SELECT RAISE(ABORT, 'constraint simulator_charges_readable: the time is none');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_log_readable_insert BEFORE INSERT ON audit_log
WHEN NEW.at NOT BETWEEN -62167219200000000 AND 253402300799999999
BEGIN
    SELECT RAISE(ABORT, 'constraint audit_log_readable: the time is none');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_log_readable_update BEFORE UPDATE OF at ON audit_log
WHEN NEW.at NOT BETWEEN -62167219200000000 AND 253402300799999999
BEGIN
    SELECT RAISE(ABORT, 'constraint audit_log_readable: the time is none');
END;
-- +goose StatementEnd

-- What is written to find out whether anything can be.
CREATE TABLE readiness (
    one   integer NOT NULL PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    proof blob    NOT NULL
) STRICT;

INSERT INTO readiness (proof) VALUES (x'');

-- +goose Down

DROP TABLE readiness;
DROP TRIGGER audit_log_readable_update;
DROP TRIGGER audit_log_readable_insert;
DROP TRIGGER simulator_charges_readable_update;
DROP TRIGGER simulator_charges_readable_insert;
DROP TRIGGER idempotency_records_readable_update;
DROP TRIGGER idempotency_records_readable_insert;
DROP TRIGGER journal_entries_readable_update;
DROP TRIGGER journal_entries_readable_insert;
DROP TRIGGER orders_readable_lines;
DROP TRIGGER orders_readable_update;
DROP TRIGGER orders_readable_insert;
DROP TABLE currencies;
