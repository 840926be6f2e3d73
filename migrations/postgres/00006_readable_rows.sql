-- +goose Up

-- Times are of the years 1 to 9999, which RFC 3339 and every reader can write; so none is infinite. One such time by hand
-- would keep a record from being answered, or hide others from a list.
ALTER TABLE orders ADD CONSTRAINT orders_times CHECK (
    placed_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    AND attempt_begun_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    AND paid_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    AND cancelled_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
);
ALTER TABLE idempotency_records ADD CONSTRAINT idempotency_records_times CHECK (
    created_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    AND lease_expires_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    AND recover_from BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    AND completed_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    AND expires_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
);
ALTER TABLE simulator_charges ADD CONSTRAINT simulator_charges_times CHECK (
    booked_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
);
ALTER TABLE journal_entries ADD CONSTRAINT journal_entries_times CHECK (
    posted_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
);
ALTER TABLE audit_log ADD CONSTRAINT audit_log_times CHECK (
    at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
);

-- +goose Down

ALTER TABLE audit_log DROP CONSTRAINT audit_log_times;
ALTER TABLE journal_entries DROP CONSTRAINT journal_entries_times;
ALTER TABLE simulator_charges DROP CONSTRAINT simulator_charges_times;
ALTER TABLE idempotency_records DROP CONSTRAINT idempotency_records_times;
ALTER TABLE orders DROP CONSTRAINT orders_times;
