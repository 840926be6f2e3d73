-- +goose Up

-- PostgreSQL reads and plans a CHECK anew with each statement that writes to its table: the rules of orders cost twice the
-- update that they watch. What a type says of its values is planned once, and so is what a trigger asks. So a rule of one
-- column is the column's type, and the rules of a row are asked by a trigger, those of its status alone. What ties PAID to
-- the payment stays a CHECK: nobody can switch it off.

-- Times are of the years 1 to 9999, which RFC 3339 and every reader can write; so none is infinite.
CREATE DOMAIN readable_time AS timestamptz
    CONSTRAINT readable_time CHECK (VALUE BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00');
CREATE DOMAIN currency_code AS text CONSTRAINT currency_code CHECK (VALUE ~ '^[A-Z]{3}$');
CREATE DOMAIN minor_units AS bigint CONSTRAINT minor_units CHECK (VALUE BETWEEN 1 AND 9007199254740991);
CREATE DOMAIN ordinal AS integer CONSTRAINT ordinal CHECK (VALUE >= 1);
CREATE DOMAIN quantity AS integer CONSTRAINT quantity CHECK (VALUE >= 0);
CREATE DOMAIN lines AS jsonb CONSTRAINT lines CHECK (jsonb_typeof(VALUE) = 'array');
CREATE DOMAIN idempotency_key AS text COLLATE "C" CONSTRAINT idempotency_key CHECK (length(VALUE) BETWEEN 1 AND 255);
CREATE DOMAIN posting_key AS text COLLATE "C" CONSTRAINT posting_key CHECK (VALUE ~ '^[0-9a-f]{64}$');
CREATE DOMAIN civil_date AS text CONSTRAINT civil_date CHECK (VALUE ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$');
CREATE DOMAIN signed_units AS bigint
    CONSTRAINT signed_units CHECK (VALUE <> 0 AND VALUE BETWEEN -9007199254740991 AND 9007199254740991);
CREATE DOMAIN source_document_type AS text CONSTRAINT source_document_type CHECK (
    VALUE IN ('sales_invoice', 'purchase_bill', 'expense_claim', 'adjustment', 'opening_balance')
);

-- What never changes stands first, what a payment's end changes last, and each page has room for a payment's two updates:
-- so the first of them touches no index, and the log of both is short. Orders without a payment are in no index over
-- payments.
ALTER TABLE orders RENAME TO orders_before;
ALTER INDEX orders_pkey RENAME TO orders_before_pkey;
ALTER TABLE orders_before DROP CONSTRAINT orders_payment_id, DROP CONSTRAINT orders_charge_id;
DROP INDEX orders_paid_at;

CREATE TABLE orders (
    id               uuid          PRIMARY KEY,
    amount           minor_units   NOT NULL,
    placed_at        readable_time NOT NULL,
    customer_id      text          NOT NULL,
    currency         currency_code NOT NULL,
    lines            lines         NOT NULL,
    attempt_amount   bigint,
    attempt_begun_at readable_time,
    attempt          integer       NOT NULL DEFAULT 0,
    written_off      integer       NOT NULL DEFAULT 0,
    attempt_currency text,
    attempt_method   text,
    attempt_provider text,
    paying_key       text,
    version          ordinal       NOT NULL,
    status           text          NOT NULL,
    payment_id       uuid,
    paid_at          readable_time,
    charge_id        text,
    cancelled_at     readable_time,
    cancel_reason    text,

    CONSTRAINT orders_paid CHECK (
        status <> 'PAID' OR payment_id IS NOT NULL AND charge_id IS NOT NULL AND paid_at IS NOT NULL
    )
) WITH (fillfactor = 60);

INSERT INTO orders (
    id, amount, placed_at, customer_id, currency, lines, attempt_amount, attempt_begun_at, attempt, written_off,
    attempt_currency, attempt_method, attempt_provider, paying_key, version, status, payment_id, paid_at, charge_id,
    cancelled_at, cancel_reason
)
SELECT
    id, amount, placed_at, customer_id, currency, lines, attempt_amount, attempt_begun_at, attempt, written_off,
    attempt_currency, attempt_method, attempt_provider, paying_key, version, status, payment_id, paid_at, charge_id,
    cancelled_at, cancel_reason
FROM orders_before;

DROP TABLE orders_before;

CREATE UNIQUE INDEX orders_payment_id ON orders (payment_id) WHERE payment_id IS NOT NULL;
CREATE UNIQUE INDEX orders_charge_id ON orders (charge_id) WHERE charge_id IS NOT NULL;
CREATE INDEX orders_paid_at ON orders (paid_at, id) WHERE paid_at IS NOT NULL;

-- An order that still waits for its payment has none. What was asked of the provider is known as long as an attempt was
-- ever begun. Only a CANCELLED one has a time or a reason of that; it may keep what it was before.
-- +goose StatementBegin
CREATE FUNCTION orders_rules() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    broken text;
BEGIN
    IF NEW.status = 'PAID' THEN
        IF NOT (
            NEW.attempt >= 1 AND NEW.attempt_amount IS NOT NULL AND NEW.attempt_currency IS NOT NULL
            AND NEW.attempt_begun_at IS NOT NULL AND NEW.written_off BETWEEN 0 AND NEW.attempt
            AND NEW.cancelled_at IS NULL AND NEW.cancel_reason IS NULL
        ) THEN
            broken := 'orders_paid_whole';
        END IF;
    ELSIF NEW.status = 'PAYMENT_PENDING' THEN
        IF NOT (
            NEW.attempt >= 1 AND NEW.attempt_amount IS NOT NULL AND NEW.attempt_currency IS NOT NULL
            AND NEW.attempt_begun_at IS NOT NULL AND NEW.written_off BETWEEN 0 AND NEW.attempt
            AND NEW.paying_key IS NOT NULL AND NEW.payment_id IS NULL AND NEW.charge_id IS NULL AND NEW.paid_at IS NULL
            AND NEW.cancelled_at IS NULL AND NEW.cancel_reason IS NULL
        ) THEN
            broken := 'orders_pending_whole';
        END IF;
    ELSIF NEW.status IN ('PLACED', 'CANCELLED') THEN
        IF NOT (
            NEW.attempt >= 0 AND (NEW.attempt > 0) = (NEW.attempt_amount IS NOT NULL)
            AND (NEW.attempt > 0) = (NEW.attempt_currency IS NOT NULL)
            AND (NEW.attempt > 0) = (NEW.attempt_begun_at IS NOT NULL) AND NEW.written_off BETWEEN 0 AND NEW.attempt
            AND (
                NEW.status = 'CANCELLED'
                OR NEW.payment_id IS NULL AND NEW.charge_id IS NULL AND NEW.paid_at IS NULL
                AND NEW.cancelled_at IS NULL AND NEW.cancel_reason IS NULL
            )
        ) THEN
            broken := 'orders_unpaid_whole';
        END IF;
    ELSE
        broken := 'orders_status';
    END IF;
    IF broken IS NULL THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'order %, %, violates constraint "%"', NEW.id, NEW.status, broken
        USING ERRCODE = 'check_violation', TABLE = 'orders', CONSTRAINT = broken;
END
$$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER orders_rules AFTER INSERT OR UPDATE ON orders
    FOR EACH ROW EXECUTE FUNCTION orders_rules();

ALTER TABLE idempotency_records
    DROP CONSTRAINT idempotency_records_key,
    DROP CONSTRAINT idempotency_records_executions,
    DROP CONSTRAINT idempotency_records_status,
    DROP CONSTRAINT idempotency_records_times;
ALTER TABLE idempotency_records
    ALTER COLUMN idempotency_key TYPE idempotency_key,
    ALTER COLUMN executions TYPE ordinal,
    ALTER COLUMN created_at TYPE readable_time,
    ALTER COLUMN lease_expires_at TYPE readable_time,
    ALTER COLUMN recover_from TYPE readable_time,
    ALTER COLUMN completed_at TYPE readable_time,
    ALTER COLUMN expires_at TYPE readable_time;

-- A record in progress has its request and no outcome; a finished one has its outcome and an end.
-- +goose StatementBegin
CREATE FUNCTION idempotency_records_rules() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = 'IN_PROGRESS' THEN
        IF NEW.request IS NOT NULL AND NEW.completed_at IS NULL AND NEW.expires_at IS NULL AND NEW.document IS NULL
            AND NEW.refusal IS NULL AND NEW.created_id IS NULL THEN
            RETURN NULL;
        END IF;
    ELSIF NEW.status = 'SUCCEEDED' THEN
        IF NEW.request IS NULL AND NEW.completed_at IS NOT NULL AND NEW.expires_at IS NOT NULL
            AND NEW.document IS NOT NULL AND NEW.refusal IS NULL THEN
            RETURN NULL;
        END IF;
    ELSIF NEW.status = 'FAILED' THEN
        IF NEW.request IS NULL AND NEW.completed_at IS NOT NULL AND NEW.expires_at IS NOT NULL
            AND NEW.document IS NOT NULL AND NEW.refusal IS NOT NULL AND NEW.created_id IS NULL THEN
            RETURN NULL;
        END IF;
    END IF;
    RAISE EXCEPTION 'a record of %, %, violates constraint "idempotency_records_status"', NEW.operation, NEW.status
        USING ERRCODE = 'check_violation', TABLE = 'idempotency_records', CONSTRAINT = 'idempotency_records_status';
END
$$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER idempotency_records_rules AFTER INSERT OR UPDATE ON idempotency_records
    FOR EACH ROW EXECUTE FUNCTION idempotency_records_rules();

ALTER TABLE journal_entries
    DROP CONSTRAINT journal_entries_key_is_a_hash,
    DROP CONSTRAINT journal_entries_type,
    DROP CONSTRAINT journal_entries_version,
    DROP CONSTRAINT journal_entries_service_date,
    DROP CONSTRAINT journal_entries_total,
    DROP CONSTRAINT journal_entries_currency,
    DROP CONSTRAINT journal_entries_balance,
    DROP CONSTRAINT journal_entries_times;
DROP FUNCTION journal_lines_balance(jsonb, bigint);
ALTER TABLE journal_entries
    ALTER COLUMN posting_key TYPE posting_key,
    ALTER COLUMN source_document_type TYPE source_document_type,
    ALTER COLUMN version TYPE quantity,
    ALTER COLUMN service_date TYPE civil_date,
    ALTER COLUMN total TYPE signed_units,
    ALTER COLUMN currency TYPE currency_code,
    ALTER COLUMN posted_at TYPE readable_time,
    ALTER COLUMN lines TYPE lines;

-- Debits and credits are each the total, and every line is whole: so not even SQL written by hand books half an entry.
-- The amount of a line that is not whole is NULL, and so is then the sum.
-- +goose StatementBegin
CREATE FUNCTION journal_entries_rules() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    line   jsonb;
    amount numeric;
    debit  numeric := 0;
    credit numeric := 0;
BEGIN
    FOR i IN 0 .. jsonb_array_length(NEW.lines) - 1 LOOP
        line := NEW.lines -> i;
        amount := CASE
            WHEN jsonb_typeof(line -> 'account') = 'string' AND length(line ->> 'account') >= 1
                AND jsonb_typeof(line -> 'amount') = 'number' AND line ->> 'side' IN ('debit', 'credit')
                THEN (line ->> 'amount')::numeric
        END;
        IF amount < 1 OR scale(amount) > 0 THEN
            amount := NULL;
        END IF;
        IF line ->> 'side' = 'credit' THEN
            credit := credit + amount;
        ELSE
            debit := debit + amount;
        END IF;
    END LOOP;
    IF debit = abs(NEW.total) AND credit = abs(NEW.total) THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'journal entry % violates constraint "journal_entries_balance"', NEW.id
        USING ERRCODE = 'check_violation', TABLE = 'journal_entries', CONSTRAINT = 'journal_entries_balance';
END
$$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER journal_entries_rules AFTER INSERT OR UPDATE ON journal_entries
    FOR EACH ROW EXECUTE FUNCTION journal_entries_rules();

-- +goose Down

DROP TRIGGER journal_entries_rules ON journal_entries;
DROP FUNCTION journal_entries_rules();
ALTER TABLE journal_entries
    ALTER COLUMN posting_key TYPE text COLLATE "C",
    ALTER COLUMN source_document_type TYPE text,
    ALTER COLUMN version TYPE integer,
    ALTER COLUMN service_date TYPE text,
    ALTER COLUMN total TYPE bigint,
    ALTER COLUMN currency TYPE text,
    ALTER COLUMN posted_at TYPE timestamptz,
    ALTER COLUMN lines TYPE jsonb;
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
ALTER TABLE journal_entries
    ADD CONSTRAINT journal_entries_key_is_a_hash CHECK (posting_key ~ '^[0-9a-f]{64}$'),
    ADD CONSTRAINT journal_entries_type CHECK (
        source_document_type IN ('sales_invoice', 'purchase_bill', 'expense_claim', 'adjustment', 'opening_balance')
    ),
    ADD CONSTRAINT journal_entries_version CHECK (version >= 0),
    ADD CONSTRAINT journal_entries_service_date CHECK (service_date ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'),
    ADD CONSTRAINT journal_entries_total CHECK (total <> 0 AND abs(total) <= 9007199254740991),
    ADD CONSTRAINT journal_entries_currency CHECK (currency ~ '^[A-Z]{3}$'),
    ADD CONSTRAINT journal_entries_balance CHECK (journal_lines_balance(lines, total)),
    ADD CONSTRAINT journal_entries_times CHECK (
        posted_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    );

DROP TRIGGER idempotency_records_rules ON idempotency_records;
DROP FUNCTION idempotency_records_rules();
ALTER TABLE idempotency_records
    ALTER COLUMN idempotency_key TYPE text COLLATE "C",
    ALTER COLUMN executions TYPE integer,
    ALTER COLUMN created_at TYPE timestamptz,
    ALTER COLUMN lease_expires_at TYPE timestamptz,
    ALTER COLUMN recover_from TYPE timestamptz,
    ALTER COLUMN completed_at TYPE timestamptz,
    ALTER COLUMN expires_at TYPE timestamptz;
ALTER TABLE idempotency_records
    ADD CONSTRAINT idempotency_records_key CHECK (length(idempotency_key) BETWEEN 1 AND 255),
    ADD CONSTRAINT idempotency_records_executions CHECK (executions >= 1),
    ADD CONSTRAINT idempotency_records_status CHECK (
        CASE status
            WHEN 'IN_PROGRESS' THEN
                num_nonnulls(completed_at, expires_at, document, refusal, created_id) = 0 AND request IS NOT NULL
            WHEN 'SUCCEEDED' THEN
                num_nulls(completed_at, expires_at, document) = 0 AND num_nonnulls(refusal, request) = 0
            WHEN 'FAILED' THEN
                num_nulls(completed_at, expires_at, document, refusal) = 0 AND num_nonnulls(created_id, request) = 0
            ELSE false
        END
    ),
    ADD CONSTRAINT idempotency_records_times CHECK (
        created_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
        AND lease_expires_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
        AND recover_from BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
        AND completed_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
        AND expires_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    );

-- The order of the columns stays.
DROP TRIGGER orders_rules ON orders;
DROP FUNCTION orders_rules();
DROP INDEX orders_payment_id, orders_charge_id;
ALTER TABLE orders RESET (fillfactor);
ALTER TABLE orders
    ALTER COLUMN amount TYPE bigint,
    ALTER COLUMN placed_at TYPE timestamptz,
    ALTER COLUMN currency TYPE text,
    ALTER COLUMN lines TYPE jsonb,
    ALTER COLUMN attempt_begun_at TYPE timestamptz,
    ALTER COLUMN version TYPE integer,
    ALTER COLUMN paid_at TYPE timestamptz,
    ALTER COLUMN cancelled_at TYPE timestamptz;
ALTER TABLE orders
    DROP CONSTRAINT orders_paid,
    ADD CONSTRAINT orders_payment_id UNIQUE (payment_id),
    ADD CONSTRAINT orders_charge_id UNIQUE (charge_id),
    ADD CONSTRAINT orders_status CHECK (status IN ('PLACED', 'PAYMENT_PENDING', 'PAID', 'CANCELLED')),
    ADD CONSTRAINT orders_amount CHECK (amount BETWEEN 1 AND 9007199254740991),
    ADD CONSTRAINT orders_currency CHECK (currency ~ '^[A-Z]{3}$'),
    ADD CONSTRAINT orders_version CHECK (version >= 1),
    ADD CONSTRAINT orders_lines CHECK (jsonb_typeof(lines) = 'array'),
    ADD CONSTRAINT orders_paid CHECK (
        CASE status
            WHEN 'PAID' THEN num_nulls(payment_id, charge_id, paid_at) = 0
            WHEN 'CANCELLED' THEN true
            ELSE num_nonnulls(payment_id, charge_id, paid_at) = 0
        END
    ),
    ADD CONSTRAINT orders_pending CHECK (status <> 'PAYMENT_PENDING' OR paying_key IS NOT NULL),
    ADD CONSTRAINT orders_cancelled CHECK (status = 'CANCELLED' OR num_nonnulls(cancelled_at, cancel_reason) = 0),
    ADD CONSTRAINT orders_attempt CHECK (
        attempt >= 0
        AND (attempt > 0) = (attempt_amount IS NOT NULL)
        AND (attempt > 0) = (attempt_currency IS NOT NULL)
        AND (attempt > 0) = (attempt_begun_at IS NOT NULL)
        AND (attempt > 0 OR status IN ('PLACED', 'CANCELLED'))
    ),
    ADD CONSTRAINT orders_written_off CHECK (written_off BETWEEN 0 AND attempt),
    ADD CONSTRAINT orders_times CHECK (
        placed_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
        AND attempt_begun_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
        AND paid_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
        AND cancelled_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    );

DROP DOMAIN readable_time, currency_code, minor_units, ordinal, quantity, lines, idempotency_key, posting_key, civil_date,
    signed_units, source_document_type;
