@payments @answers
Feature: What a client gets back

  One scenario for each row of the README's table that the recipe's scenarios do not show already.

  Scenario: Already paid, the same money, a new key
    Given an order of 1,000 yen is placed
    When Alice confirms the payment
    And Alice confirms the payment
    Then the answer is 200
    And the answer is not a replay
    And every receipt names the same payment
    And the payment is booked once
    And Alice is charged once

  Scenario: The provider declines
    Given an order of 1,000 yen is placed
    And the gateway declines
    When Alice confirms the payment
    Then the answer is 402
    And the problem is "payment_declined"
    And the answer's declineCode is "card_declined"
    And it advises a new key
    And the order is placed
    When she sends the same request again
    Then the answer is the same
    And the answer is a replay
    And Alice is not charged

  Scenario: After a decline another key may try
    Given an order of 1,000 yen is placed
    And the gateway finds too little money
    When Alice confirms the payment
    Then the answer's declineCode is "insufficient_funds"
    When the gateway works again
    And Alice confirms the payment
    Then the answer is 200
    And the order is paid
    And Alice is charged once

  Scenario: The amount is not the order's
    Given an order of 1,000 yen is placed
    When Alice confirms the payment of 2,000 yen
    Then the answer is 422
    And the problem is "amount_mismatch"
    And it advises a new key
    And the order is placed
    When she sends the same request again
    Then the answer is the same
    And Alice is not charged

  Scenario: The currency is not the order's
    Given an order of 1,000 yen is placed
    When Alice confirms the payment of 1,000 USD
    Then the answer is 422
    And the problem is "amount_mismatch"
    And Alice is not charged

  Scenario: A cancelled order cannot be paid
    Given an order of 1,000 yen is placed
    And Alice cancels the order
    When Alice confirms the payment
    Then the answer is 409
    And the problem is "invalid_state"
    And the answer's orderStatus is "CANCELLED"
    And it advises a new key
    When she sends the same request again
    Then the answer is the same
    And Alice is not charged

  Scenario: A paid order cannot be cancelled
    Given an order of 1,000 yen is placed
    And Alice confirms the payment
    When Alice cancels the order
    Then the answer is 409
    And the problem is "invalid_state"
    And the order is paid

  @slow
  Scenario: The order is being paid under another key
    Given an order of 1,000 yen is placed
    And the gateway is slow
    And Alice's payment is under way
    When Alice confirms the payment with the key "another"
    Then the answer is 409
    And the problem is "payment_in_progress"
    And it advises the same key
    And it says when to come again
    And nothing is on record
    When Alice cancels the order
    Then the problem is "payment_in_progress"
    When the gateway answers
    Then the answer is 200
    And the order is paid
    And Alice is charged once

  Scenario: The provider gives no definite answer
    Given an order of 1,000 yen is placed
    And the gateway is down
    When Alice confirms the payment
    Then the answer is 503
    And the problem is "outcome_unknown"
    And it advises the same key
    And it says when to come again
    And the outcome is "IN_PROGRESS"
    And the order is being paid
    And Alice is not charged

  Scenario: Too many requests at once
    Given an order of 1,000 yen is placed
    And the service serves each caller 1 requests a second
    When Alice confirms the payment
    And she sends the same request 20 times at once
    Then one of the answers is 429
    And the problem is "rate_limited"
    And it advises the same key
    And it says when to come again
    And every answer is the same or advises the same key
    And Alice is charged once

  Scenario: The store is missing
    Given an order of 1,000 yen is placed
    And the store is away
    When Alice confirms the payment
    Then the answer is 503
    And the problem is "unavailable"
    And it advises the same key
    And it says when to come again
    When the store is back
    Then nothing is on record
    When she sends the same request again
    Then the answer is 200
    And Alice is charged once

  Scenario: A bug
    Given an order of 1,000 yen is placed
    And the next request meets a bug
    When Alice confirms the payment
    Then the answer is 500
    And the problem is "internal"
    And it advises the same key
    And it says when to come again
    When she sends the same request again
    Then the answer is 200
    And Alice is charged once

  Scenario: There is no such order
    When Alice confirms the payment with the body:
      """
      {"amount":1000,"currency":"JPY"}
      """
    Then the answer is 404
    And the problem is "order_not_found"
    And it advises to fix the request

  Scenario: Another customer's order
    Given an order of 1,000 yen is placed
    When Bob confirms the payment
    Then the answer is 404
    And the problem is "order_not_found"
    And nothing is on record
    When Bob asks for the order
    Then the answer is 404
    And the order is placed

  Scenario: The key is missing
    Given an order of 1,000 yen is placed
    When Alice confirms the payment without a key
    Then the answer is 400
    And the problem is "idempotency_key_missing"
    And it advises to fix the request
    And the answer has the header "Link"
    And the order is placed

  Scenario: The key is malformed
    Given an order of 1,000 yen is placed
    When Alice confirms the payment with the malformed key "a b"
    Then the answer is 400
    And the problem is "idempotency_key_invalid"
    And it advises to fix the request
    When Alice confirms the payment with two keys
    Then the problem is "idempotency_key_invalid"
    And the order is placed

  Scenario: The body is wrong
    Given an order of 1,000 yen is placed
    When Alice confirms the payment with the body:
      """
      {"amount":1000.0,"currency":"JPY","orderId":"another"}
      """
    Then the answer is 400
    And the problem is "invalid_request"
    And it advises to fix the request
    And the order is placed

  Scenario: The body is too large
    Given an order of 1,000 yen is placed
    When Alice confirms the payment with a body of 70000 bytes
    Then the answer is 413
    And the problem is "payload_too_large"
    And it advises to fix the request

  Scenario: The body is of another type
    Given an order of 1,000 yen is placed
    When Alice confirms the payment as "text/plain"
    Then the answer is 415
    And the problem is "unsupported_media_type"
    And it advises to fix the request

  Scenario: There is no valid token
    Given an order of 1,000 yen is placed
    When somebody without a token confirms the payment
    Then the answer is 401
    And the problem is "unauthenticated"
    And it advises to fix the request
    And the answer has the header "WWW-Authenticate"
    When Alice confirms the payment with the token "nobody"
    Then the answer is 401
    And the order is placed

  Scenario: The caller is not allowed to
    When Alice asks for /api/unresolved
    Then the answer is 403
    And the problem is "forbidden"
    And it advises to fix the request

  Scenario: There is no such route
    When Alice asks for /api/nothing
    Then the answer is 404
    And the problem is "not_found"
    And it advises to fix the request

  Scenario: There is no such method
    Given an order of 1,000 yen is placed
    When Alice deletes /api/orders/{order}
    Then the answer is 405
    And the problem is "method_not_allowed"
    And the answer has the header "Allow"

  Scenario: What became of a request
    Given an order of 1,000 yen is placed
    When Alice confirms the payment, but the answer is lost
    And Alice asks what became of the request
    Then the answer is 200
    And the answer's status is "SUCCEEDED"
    And the answer's response.status is "PAID"
    And the answer's executions is "1"
