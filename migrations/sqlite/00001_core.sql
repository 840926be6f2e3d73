-- +goose Up

-- One row per order, updated when a payment begins and when it ends. Times are integers: µs since 1970, UTC.
CREATE TABLE orders (
    id               text        NOT NULL PRIMARY KEY,
    customer_id      text        NOT NULL,
    status           text        NOT NULL,
    amount           integer     NOT NULL,
    currency         text        NOT NULL,
    placed_at        integer     NOT NULL,
    version          integer     NOT NULL,
    attempt          integer     NOT NULL DEFAULT 0,
    attempt_amount   integer,
    attempt_currency text,
    attempt_method   text,
    attempt_begun_at integer,
    paying_key       text,
    payment_id       text,
    charge_id        text,
    paid_at          integer,
    cancelled_at     integer,
    cancel_reason    text,
    lines            text        NOT NULL,

    CONSTRAINT orders_status CHECK (status IN ('PLACED', 'PAYMENT_PENDING', 'PAID', 'CANCELLED')),
    CONSTRAINT orders_amount CHECK (amount BETWEEN 1 AND 9007199254740991),
    CONSTRAINT orders_currency CHECK (currency GLOB '[A-Z][A-Z][A-Z]'),
    CONSTRAINT orders_version CHECK (version >= 1),
    CONSTRAINT orders_lines CHECK (json_type(lines) = 'array'),
    -- A PAID order has its payment; one that still waits for it has none.
    CONSTRAINT orders_paid CHECK (
        CASE status
            WHEN 'PAID' THEN payment_id IS NOT NULL AND charge_id IS NOT NULL AND paid_at IS NOT NULL
            WHEN 'CANCELLED' THEN 1
            ELSE payment_id IS NULL AND charge_id IS NULL AND paid_at IS NULL
        END
    ),
    CONSTRAINT orders_pending CHECK (status <> 'PAYMENT_PENDING' OR paying_key IS NOT NULL),
    CONSTRAINT orders_cancelled CHECK (status = 'CANCELLED' OR cancelled_at IS NULL AND cancel_reason IS NULL),
    -- What was asked of the provider is known as long as an attempt was ever begun.
    CONSTRAINT orders_attempt CHECK (
        attempt >= 0
        AND (attempt > 0) = (attempt_amount IS NOT NULL)
        AND (attempt > 0) = (attempt_currency IS NOT NULL)
        AND (attempt > 0) = (attempt_begun_at IS NOT NULL)
        AND (attempt > 0 OR status IN ('PLACED', 'CANCELLED'))
    ),
    CONSTRAINT orders_payment_id UNIQUE (payment_id),
    CONSTRAINT orders_charge_id UNIQUE (charge_id)
) STRICT;

-- One row per intent. Its scope is three columns, never one joined text.
CREATE TABLE idempotency_records (
    operation        text        NOT NULL,
    actor            text        NOT NULL,
    idempotency_key  text        NOT NULL,
    fingerprint      text        NOT NULL,
    token            text        NOT NULL,
    status           text        NOT NULL,
    executions       integer     NOT NULL,
    created_at       integer     NOT NULL,
    lease_expires_at integer     NOT NULL,
    completed_at     integer,
    expires_at       integer,
    refusal          text,
    created_id       text,
    request          blob,
    document         blob,

    PRIMARY KEY (operation, actor, idempotency_key),
    CONSTRAINT idempotency_records_key CHECK (length(idempotency_key) BETWEEN 1 AND 255),
    CONSTRAINT idempotency_records_executions CHECK (executions >= 1),
    -- A record in progress has its request and no outcome; a finished one has its outcome and an end.
    CONSTRAINT idempotency_records_status CHECK (
        CASE status
            WHEN 'IN_PROGRESS' THEN
                completed_at IS NULL AND expires_at IS NULL AND document IS NULL AND refusal IS NULL
                AND created_id IS NULL AND request IS NOT NULL
            WHEN 'SUCCEEDED' THEN
                completed_at IS NOT NULL AND expires_at IS NOT NULL AND document IS NOT NULL
                AND refusal IS NULL AND request IS NULL
            WHEN 'FAILED' THEN
                completed_at IS NOT NULL AND expires_at IS NOT NULL AND document IS NOT NULL
                AND refusal IS NOT NULL AND created_id IS NULL AND request IS NULL
            ELSE 0
        END
    )
) STRICT;

-- For the sweeper, which asks for finished, expired records.
CREATE INDEX idempotency_records_expires_at ON idempotency_records (expires_at) WHERE expires_at IS NOT NULL;

-- The built-in payment provider's book. It stands for the outside world: nothing here refers to it, and it is written in
-- transactions of its own.
CREATE TABLE simulator_charges (
    gateway_key  text        NOT NULL PRIMARY KEY,
    order_id     text        NOT NULL,
    attempt      integer     NOT NULL,
    amount       integer     NOT NULL,
    currency     text        NOT NULL,
    method       text        NOT NULL,
    status       text        NOT NULL,
    charge_id    text        UNIQUE,
    decline_code text,
    booked_at    integer     NOT NULL,

    -- A failed line remembers that the first call is over; it is no charge.
    CONSTRAINT simulator_charges_status CHECK (
        CASE status
            WHEN 'approved' THEN charge_id IS NOT NULL AND decline_code IS NULL
            WHEN 'declined' THEN charge_id IS NULL AND decline_code IS NOT NULL
            WHEN 'failed' THEN charge_id IS NULL AND decline_code IS NULL
            ELSE 0
        END
    )
) STRICT;

CREATE INDEX simulator_charges_order_id ON simulator_charges (order_id);

-- +goose Down

DROP TABLE simulator_charges;
DROP TABLE idempotency_records;
DROP TABLE orders;
