@payments @crash
Feature: The service dies in a payment, and nothing is lost or done twice

  Scenario: Before the gateway is asked
    Given an order of 1,000 yen is placed
    And the service will crash before it asks the gateway
    When Alice confirms the payment
    Then no answer comes
    When the service is started again
    And she sends the same request again
    Then the answer is 409
    And the problem is "idempotency_in_progress"
    When the lease is over
    And she sends the same request again
    Then the answer is 200
    And the order is paid
    And Alice is charged once

  Scenario: After the gateway has taken the money
    Given an order of 1,000 yen is placed
    And the service will crash after the gateway has taken the money
    When Alice confirms the payment
    Then no answer comes
    When the service is started again
    And the lease is over
    And she sends the same request again
    Then the answer is 200
    And the audit log tells of "takeover"
    And the payment is booked once
    And Alice is charged once

  Scenario: Before the outcome is committed
    Given an order of 1,000 yen is placed
    And the service will crash before it commits the outcome
    When Alice confirms the payment
    Then no answer comes
    When the service is started again
    Then the order is being paid
    When the lease is over
    And she sends the same request again
    Then the answer is 200
    And the payment is booked once
    And Alice is charged once

  Scenario: After the outcome is committed
    Given an order of 1,000 yen is placed
    And the service will crash after it has committed the outcome
    When Alice confirms the payment
    Then no answer comes
    When the service is started again
    Then the order is paid
    When she sends the same request again
    Then the answer is 200
    And the answer is a replay
    And the payment is booked once
    And Alice is charged once

  @slow
  Scenario: While the gateway thinks, and the shopper does not come back
    Given an order of 1,000 yen is placed
    And the gateway is slow
    And Alice's payment is under way
    When the service crashes
    Then no answer comes
    When the service is started again
    And the gateway answers
    And the lease is over
    And the recovery makes its round
    Then the order is paid
    And the payment is booked once
    And Alice is charged once
