-- +goose Up

-- Where a line stands in the order of booking: lines are booked one at a time, so it is counted. What is written by hand
-- needs no number and stands before all others. Lines that are there already are numbered by their time.
ALTER TABLE simulator_charges ADD COLUMN position integer NOT NULL DEFAULT 0;

UPDATE simulator_charges AS c SET position = n.number
FROM (
    SELECT gateway_key, row_number() OVER (ORDER BY booked_at, gateway_key) AS number FROM simulator_charges
) AS n
WHERE n.gateway_key = c.gateway_key;

-- For paging through the list, and for finding where a time begins in it.
CREATE INDEX simulator_charges_position ON simulator_charges (position, gateway_key);
CREATE INDEX simulator_charges_booked_at ON simulator_charges (booked_at, position);

-- For comparing with the provider: orders by the time of their payment.
CREATE INDEX orders_paid_at ON orders (paid_at, id) WHERE paid_at IS NOT NULL;

-- +goose Down

DROP INDEX orders_paid_at;
DROP INDEX simulator_charges_booked_at;
DROP INDEX simulator_charges_position;
ALTER TABLE simulator_charges DROP COLUMN position;
