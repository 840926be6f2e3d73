-- +goose Up

-- One row per source document, for ever: the entry is the record of its own posting.
CREATE TABLE journal_entries (
    id                   text    NOT NULL PRIMARY KEY,
    posting_key          text    NOT NULL,
    fingerprint          text    NOT NULL,
    company_id           text    NOT NULL,
    source_document_type text    NOT NULL,
    source_document_id   text    NOT NULL,
    version              integer NOT NULL,
    service_date         text    NOT NULL, -- a civil date, as it was sent: no zone touches it
    total                integer NOT NULL,
    currency             text    NOT NULL,
    posted_by            text    NOT NULL,
    posted_at            integer NOT NULL,
    lines                text    NOT NULL,

    CONSTRAINT journal_entries_posting_key UNIQUE (posting_key),
    CONSTRAINT journal_entries_key_is_a_hash CHECK (length(posting_key) = 64 AND posting_key NOT GLOB '*[^0-9a-f]*'),
    CONSTRAINT journal_entries_type CHECK (
        source_document_type IN ('sales_invoice', 'purchase_bill', 'expense_claim', 'adjustment', 'opening_balance')
    ),
    CONSTRAINT journal_entries_version CHECK (version BETWEEN 0 AND 2147483647),
    CONSTRAINT journal_entries_service_date CHECK (
        service_date GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'
    ),
    CONSTRAINT journal_entries_total CHECK (total <> 0 AND abs(total) <= 9007199254740991),
    CONSTRAINT journal_entries_currency CHECK (currency GLOB '[A-Z][A-Z][A-Z]'),
    CONSTRAINT journal_entries_lines CHECK (json_type(lines) = 'array')
) STRICT;

-- Debits and credits are each the total, and every line is whole: so not even SQL written by hand books half an entry.
-- A CHECK cannot look into lines here; a trigger can.
-- +goose StatementBegin
CREATE TRIGGER journal_entries_balance_insert BEFORE INSERT ON journal_entries
WHEN NOT (
    SELECT coalesce(min(coalesce(
            type = 'object'
            AND json_type(value, '$.amount') = 'integer' AND json_extract(value, '$.amount') >= 1
            AND json_extract(value, '$.side') IN ('debit', 'credit')
            AND json_type(value, '$.account') = 'text' AND length(json_extract(value, '$.account')) >= 1, 0)), 0)
        AND coalesce(sum(iif(json_extract(value, '$.side') = 'debit', json_extract(value, '$.amount'), 0)), 0) = abs(NEW.total)
        AND coalesce(sum(iif(json_extract(value, '$.side') = 'credit', json_extract(value, '$.amount'), 0)), 0) = abs(NEW.total)
    FROM json_each(NEW.lines)
)
BEGIN
    SELECT RAISE(ABORT, 'constraint journal_entries_balance: the lines are not whole and balanced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER journal_entries_balance_update BEFORE UPDATE ON journal_entries
WHEN NOT (
    SELECT coalesce(min(coalesce(
            type = 'object'
            AND json_type(value, '$.amount') = 'integer' AND json_extract(value, '$.amount') >= 1
            AND json_extract(value, '$.side') IN ('debit', 'credit')
            AND json_type(value, '$.account') = 'text' AND length(json_extract(value, '$.account')) >= 1, 0)), 0)
        AND coalesce(sum(iif(json_extract(value, '$.side') = 'debit', json_extract(value, '$.amount'), 0)), 0) = abs(NEW.total)
        AND coalesce(sum(iif(json_extract(value, '$.side') = 'credit', json_extract(value, '$.amount'), 0)), 0) = abs(NEW.total)
    FROM json_each(NEW.lines)
)
BEGIN
    SELECT RAISE(ABORT, 'constraint journal_entries_balance: the lines are not whole and balanced');
END;
-- +goose StatementEnd

-- What an operator has to know of, written once, never changed.
CREATE TABLE audit_log (
    number          integer NOT NULL PRIMARY KEY,
    event_id        text    NOT NULL UNIQUE,
    at              integer NOT NULL,
    operation       text    NOT NULL,
    actor           text    NOT NULL,
    idempotency_key text    NOT NULL,
    kind            text    NOT NULL,
    detail          text    NOT NULL,

    CONSTRAINT audit_log_kind CHECK (
        kind IN ('mismatch', 'duplicate', 'takeover', 'lease_lost', 'released', 'resolved', 'amount_conflict')
    )
) STRICT;

-- For sweeping.
CREATE INDEX audit_log_at ON audit_log (at);

-- The last number given.
CREATE TABLE audit_head (
    one    integer NOT NULL PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    number integer NOT NULL
) STRICT;

INSERT INTO audit_head (number) VALUES (0);

-- +goose Down

DROP TABLE audit_head;
DROP TABLE audit_log;
DROP TABLE journal_entries;
