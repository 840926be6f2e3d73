-- +goose Up

-- One row per order, updated when a payment begins and when it ends. No index on status: it would end HOT updates.
CREATE TABLE orders (
    id               uuid        PRIMARY KEY,
    customer_id      text        NOT NULL,
    status           text        NOT NULL,
    amount           bigint      NOT NULL,
    currency         text        NOT NULL,
    placed_at        timestamptz NOT NULL,
    version          integer     NOT NULL,
    attempt          integer     NOT NULL DEFAULT 0,
    attempt_amount   bigint,
    attempt_currency text,
    attempt_method   text,
    attempt_begun_at timestamptz,
    paying_key       text,
    payment_id       uuid,
    charge_id        text,
    paid_at          timestamptz,
    cancelled_at     timestamptz,
    cancel_reason    text,
    lines            jsonb       NOT NULL,

    CONSTRAINT orders_status CHECK (status IN ('PLACED', 'PAYMENT_PENDING', 'PAID', 'CANCELLED')),
    CONSTRAINT orders_amount CHECK (amount BETWEEN 1 AND 9007199254740991),
    CONSTRAINT orders_currency CHECK (currency ~ '^[A-Z]{3}$'),
    CONSTRAINT orders_version CHECK (version >= 1),
    CONSTRAINT orders_lines CHECK (jsonb_typeof(lines) = 'array'),
    -- A PAID order has its payment; one that still waits for it has none.
    CONSTRAINT orders_paid CHECK (
        CASE status
            WHEN 'PAID' THEN num_nulls(payment_id, charge_id, paid_at) = 0
            WHEN 'CANCELLED' THEN true
            ELSE num_nonnulls(payment_id, charge_id, paid_at) = 0
        END
    ),
    CONSTRAINT orders_pending CHECK (status <> 'PAYMENT_PENDING' OR paying_key IS NOT NULL),
    CONSTRAINT orders_cancelled CHECK (status = 'CANCELLED' OR num_nonnulls(cancelled_at, cancel_reason) = 0),
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
);

-- One row per intent. Its scope is three columns, never one joined text.
CREATE TABLE idempotency_records (
    operation        text        COLLATE "C" NOT NULL,
    actor            text        COLLATE "C" NOT NULL,
    idempotency_key  text        COLLATE "C" NOT NULL,
    fingerprint      text        NOT NULL,
    token            uuid        NOT NULL,
    status           text        NOT NULL,
    executions       integer     NOT NULL,
    created_at       timestamptz NOT NULL,
    lease_expires_at timestamptz NOT NULL,
    completed_at     timestamptz,
    expires_at       timestamptz,
    refusal          text,
    created_id       text,
    request          bytea,
    document         bytea,

    PRIMARY KEY (operation, actor, idempotency_key),
    CONSTRAINT idempotency_records_key CHECK (length(idempotency_key) BETWEEN 1 AND 255),
    CONSTRAINT idempotency_records_executions CHECK (executions >= 1),
    -- A record in progress has its request and no outcome; a finished one has its outcome and an end.
    CONSTRAINT idempotency_records_status CHECK (
        CASE status
            WHEN 'IN_PROGRESS' THEN
                num_nonnulls(completed_at, expires_at, document, refusal, created_id) = 0 AND request IS NOT NULL
            WHEN 'SUCCEEDED' THEN
                num_nulls(completed_at, expires_at, document) = 0 AND num_nonnulls(refusal, request) = 0
            WHEN 'FAILED' THEN
                num_nulls(completed_at, expires_at, document, refusal) = 0 AND num_nonnulls(created_id, request) = 0
            ELSE false
        END
    )
);

-- For the sweeper, which asks for finished, expired records.
CREATE INDEX idempotency_records_expires_at ON idempotency_records (expires_at) WHERE expires_at IS NOT NULL;

-- The built-in payment provider's book. It stands for the outside world: nothing here refers to it, and it is written in
-- transactions of its own.
CREATE TABLE simulator_charges (
    gateway_key  text        COLLATE "C" PRIMARY KEY,
    order_id     text        NOT NULL,
    attempt      integer     NOT NULL,
    amount       bigint      NOT NULL,
    currency     text        NOT NULL,
    method       text        NOT NULL,
    status       text        NOT NULL,
    charge_id    text        UNIQUE,
    decline_code text,
    booked_at    timestamptz NOT NULL,

    -- A failed line remembers that the first call is over; it is no charge.
    CONSTRAINT simulator_charges_status CHECK (
        CASE status
            WHEN 'approved' THEN charge_id IS NOT NULL AND decline_code IS NULL
            WHEN 'declined' THEN charge_id IS NULL AND decline_code IS NOT NULL
            WHEN 'failed' THEN charge_id IS NULL AND decline_code IS NULL
            ELSE false
        END
    )
);

CREATE INDEX simulator_charges_order_id ON simulator_charges (order_id);

-- +goose Down

DROP TABLE simulator_charges;
DROP TABLE idempotency_records;
DROP TABLE orders;
