-- +goose Up

-- Debits and credits are each the total, and every line is whole: so not even SQL written by hand books half an entry.
-- +goose StatementBegin
CREATE FUNCTION journal_lines_balance(lines jsonb, total bigint) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT coalesce(
        bool_and(
            coalesce(jsonb_typeof(line -> 'account'), '') = 'string' AND length(line ->> 'account') >= 1
            AND coalesce(line ->> 'side', '') IN ('debit', 'credit')
            AND coalesce(jsonb_typeof(line -> 'amount'), '') = 'number'
            AND (line ->> 'amount')::numeric >= 1
            AND scale((line ->> 'amount')::numeric) = 0
        )
        AND sum((line ->> 'amount')::numeric) FILTER (WHERE line ->> 'side' = 'debit') = abs(total)
        AND sum((line ->> 'amount')::numeric) FILTER (WHERE line ->> 'side' = 'credit') = abs(total),
        false)
    FROM jsonb_array_elements(lines) AS line
$$;
-- +goose StatementEnd

-- One row per source document, for ever: the entry is the record of its own posting.
CREATE TABLE journal_entries (
    id                   uuid        PRIMARY KEY,
    posting_key          text        COLLATE "C" NOT NULL,
    fingerprint          text        NOT NULL,
    company_id           text        NOT NULL,
    source_document_type text        NOT NULL,
    source_document_id   text        NOT NULL,
    version              integer     NOT NULL,
    service_date         text        NOT NULL, -- a civil date, as it was sent: no zone touches it
    total                bigint      NOT NULL,
    currency             text        NOT NULL,
    posted_by            text        NOT NULL,
    posted_at            timestamptz NOT NULL,
    lines                jsonb       NOT NULL,

    CONSTRAINT journal_entries_posting_key UNIQUE (posting_key),
    CONSTRAINT journal_entries_key_is_a_hash CHECK (posting_key ~ '^[0-9a-f]{64}$'),
    CONSTRAINT journal_entries_type CHECK (
        source_document_type IN ('sales_invoice', 'purchase_bill', 'expense_claim', 'adjustment', 'opening_balance')
    ),
    CONSTRAINT journal_entries_version CHECK (version >= 0),
    CONSTRAINT journal_entries_service_date CHECK (service_date ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'),
    CONSTRAINT journal_entries_total CHECK (total <> 0 AND abs(total) <= 9007199254740991),
    CONSTRAINT journal_entries_currency CHECK (currency ~ '^[A-Z]{3}$'),
    CONSTRAINT journal_entries_balance CHECK (journal_lines_balance(lines, total))
);

-- What an operator has to know of, written once, never changed.
CREATE TABLE audit_log (
    number          bigint      PRIMARY KEY,
    event_id        uuid        NOT NULL UNIQUE,
    at              timestamptz NOT NULL,
    operation       text        NOT NULL,
    actor           text        NOT NULL,
    idempotency_key text        NOT NULL,
    kind            text        NOT NULL,
    detail          text        NOT NULL,

    CONSTRAINT audit_log_kind CHECK (
        kind IN ('mismatch', 'duplicate', 'takeover', 'lease_lost', 'released', 'resolved', 'amount_conflict')
    )
);

-- For sweeping.
CREATE INDEX audit_log_at ON audit_log (at);

-- The last number given. Whoever writes entries holds this row until he commits: so numbers become visible in their
-- order, and nobody who reads on from the last one misses any.
CREATE TABLE audit_head (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one),
    number bigint  NOT NULL
);

INSERT INTO audit_head (number) VALUES (0);

-- +goose Down

DROP TABLE audit_head;
DROP TABLE audit_log;
DROP TABLE journal_entries;
DROP FUNCTION journal_lines_balance(jsonb, bigint);
