-- +goose Up

-- Where a line stands in the order of booking: the number of the transaction that booked it. What is written by hand
-- needs none and stands before all others. Lines that are there already are numbered by their time; that each of them had
-- a transaction of its own keeps their numbers below those to come.
ALTER TABLE simulator_charges ADD COLUMN position bigint NOT NULL DEFAULT 0;

UPDATE simulator_charges AS c SET position = n.number
FROM (
    SELECT gateway_key, row_number() OVER (ORDER BY booked_at, gateway_key) AS number FROM simulator_charges
) AS n
WHERE n.gateway_key = c.gateway_key;

-- For paging through the list, and for finding where a time begins in it.
CREATE INDEX simulator_charges_position ON simulator_charges (position, gateway_key);
CREATE INDEX simulator_charges_booked_at ON simulator_charges (booked_at, position);

-- For comparing with the provider: orders by the time of their payment. It changes with the payment's and the charge's
-- id, in an update that their indexes keep from being HOT anyway; the condition names no column that changes earlier.
CREATE INDEX orders_paid_at ON orders (paid_at, id) WHERE paid_at IS NOT NULL;

-- +goose Down

DROP INDEX orders_paid_at;
DROP INDEX simulator_charges_booked_at;
DROP INDEX simulator_charges_position;
ALTER TABLE simulator_charges DROP COLUMN position;
