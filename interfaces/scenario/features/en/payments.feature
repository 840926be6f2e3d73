@payments @recipe
Feature: A payment is confirmed once, however often it is asked for

  The first recipe's five categories: normal, duplicate, concurrent, reuse, expiry.

  @normal
  Scenario: An order is placed and paid
    When Alice places an order of 1,000 yen
    Then the answer is 201
    And the answer has the header "Location"
    And the answer's status is "PLACED"
    When Alice confirms the payment
    Then the answer is 200
    And the answer is not a replay
    And the answer's status is "PAID"
    And the order is paid
    And the outcome is "SUCCEEDED"
    And the payment is booked once
    And Alice is charged once

  @normal
  Scenario: An order is cancelled, and cancelled again under another key
    Given an order of 1,000 yen is placed
    When Alice cancels the order because "changed my mind"
    Then the answer is 200
    And the answer's status is "CANCELLED"
    When she cancels the order
    Then the answer is 200
    And the answer's cancelReason is "changed my mind"
    And the order is cancelled
    And Alice is not charged

  @duplicate
  Scenario: The same request again gets the same answer
    Given an order of 1,000 yen is placed
    When Alice confirms the payment
    And she sends the same request again
    Then the answer is the same
    And the answer is a replay
    And the payment is booked once
    And Alice is charged once

  @duplicate
  Scenario: An order that is sent twice is placed once
    When Alice places an order of 1,000 yen
    And she sends the same request again
    Then the answer is 201
    And the answer is the same
    And the answer is a replay

  @duplicate
  Scenario: A cancellation that is sent twice is answered once
    Given an order of 1,000 yen is placed
    When Alice cancels the order
    And she sends the same request again
    Then the answer is the same
    And the answer is a replay

  @duplicate
  Scenario: The answer is lost on its way, and the shopper asks again
    Given an order of 1,000 yen is placed
    When Alice confirms the payment, but the answer is lost
    Then no answer comes
    When she sends the same request again
    Then the answer is 200
    And the answer is the same
    And the answer is a replay
    And Alice is charged once

  @concurrent
  Scenario: A double click
    Given an order of 1,000 yen is placed
    When Alice double-clicks
    Then every answer is the same or advises the same key
    And exactly one answer is no replay
    When she sends the same request again
    Then the answer is 200
    And the order is paid
    And Alice is charged once

  @concurrent
  Scenario: Twenty requests at once
    Given an order of 1,000 yen is placed
    When Alice confirms the payment 20 times at once
    Then every answer is the same or advises the same key
    And exactly one answer is no replay
    When she sends the same request 20 times at once
    Then every answer is the same or advises the same key
    And every receipt names the same payment
    And Alice is charged once

  @concurrent @slow
  Scenario: A duplicate while the first request runs is told to come again
    Given an order of 1,000 yen is placed
    And the gateway is slow
    And Alice's payment is under way
    When she sends the same request again
    Then the answer is 409
    And the problem is "idempotency_in_progress"
    And it advises the same key
    And it says when to come again
    And the outcome is "IN_PROGRESS"
    And the order is being paid
    When the gateway answers
    Then the answer is 200
    When she sends the same request again
    Then the answer is the same
    And the answer is a replay
    And Alice is charged once

  @reuse
  Scenario: The same key with another amount is refused
    Given an order of 1,000 yen is placed
    When Alice confirms the payment
    And the same key is used with 2,000 yen
    Then the answer is 422
    And the problem is "idempotency_key_reused"
    And it advises a new key
    And the audit log tells of "mismatch"
    When she sends the same request again
    Then the answer is 422
    And Alice is charged once

  @reuse @slow
  Scenario: The same key with another amount is refused while the first request runs
    Given an order of 1,000 yen is placed
    And the gateway is slow
    And Alice's payment is under way
    When the same key is used with 2,000 yen
    Then the answer is 422
    And the problem is "idempotency_key_reused"
    When the gateway answers
    Then the answer is 200
    And the order is paid
    And Alice is charged once

  @reuse
  Scenario: Another customer may use the same key
    Given an order of 1,000 yen is placed
    When Alice confirms the payment with the key "K1"
    And Bob uses the same key for an order of 2,000 yen
    Then the answer is 200
    And the answer is not a replay
    And the answer's amount is "2000"
    And the order is paid
    And Bob is charged once

  @reuse
  Scenario: One name may be the key of an order and of its payment
    When Alice places an order of 1,000 yen
    And Alice confirms the payment with the key "K1"
    Then the answer is 200
    When Alice confirms the payment with the key "K1"
    Then the answer is a replay

  @expiry
  Scenario: The key has expired, and the order remembers
    Given an order of 1,000 yen is placed
    When Alice confirms the payment
    And 25 hours pass
    Then nothing is on record
    When Alice sends the same request again
    Then the answer is 200
    And the answer is not a replay
    And every receipt names the same payment
    And the payment is booked once
    And Alice is charged once

  @expiry
  Scenario: Within its time the key answers
    Given an order of 1,000 yen is placed
    When Alice confirms the payment
    And 23 hours pass
    And Alice sends the same request again
    Then the answer is the same
    And the answer is a replay

  @expiry
  Scenario: An expired key is free for another request
    Given an order of 1,000 yen is placed
    When Alice confirms the payment with the key "K1"
    And 25 hours pass
    And Alice has placed an order of 3,000 yen
    And Alice confirms the payment with the key "K1"
    Then the answer is 200
    And the answer's amount is "3000"
    And Alice is charged once
