@payments @operators
Feature: What nobody knows, a person can find out

  Scenario: An operator says that the money was taken
    Given an order of 1,000 yen is placed
    And the gateway is down
    When Alice confirms the payment
    Then the answer is 503
    And the payment is listed as unresolved
    When the operator resolves the payment as charged
    Then the answer is 200
    And the answer's status is "SUCCEEDED"
    And the audit log tells of "resolved"
    And the order is paid
    And the payment is booked once
    When Alice sends the same request again
    Then the answer is 200
    And the answer is a replay

  Scenario: An operator says that no money was taken
    Given an order of 1,000 yen is placed
    And the gateway is down
    When Alice confirms the payment
    And the operator resolves the payment as not charged
    Then the answer is 200
    And the answer's status is "FAILED"
    When Alice sends the same request again
    Then the answer is 402
    And the answer's declineCode is "resolved_not_charged"
    When the gateway works again
    And Alice confirms the payment
    Then the answer is 200
    And Alice is charged once

  Scenario: The gateway's list says otherwise
    Given an order of 1,000 yen is placed
    And the gateway takes the money and loses the answer
    When Alice confirms the payment
    And the operator resolves the payment as not charged
    Then the answer is 409
    And the problem is "charge_found"
    And it advises to fix the request
    When Alice sends the same request again
    Then the answer is 200
    And Alice is charged once

  Scenario: The gateway's list cannot be read
    Given an order of 1,000 yen is placed
    And the gateway is down
    When Alice confirms the payment
    And the gateway's list cannot be read
    And the operator resolves the payment as not charged
    Then the answer is 503
    And the problem is "unavailable"
    And it advises the same key
    And it says when to come again

  Scenario: An operator fences a late holder off
    Given an order of 1,000 yen is placed
    And the gateway is down
    When Alice confirms the payment
    And the operator releases the payment
    Then the answer is 200
    And the audit log tells of "released"
    And the order is being paid

  @slow
  Scenario: Its holder is alive
    Given an order of 1,000 yen is placed
    And the gateway is slow
    And Alice's payment is under way
    When the operator releases the payment
    Then the answer is 409
    And the problem is "lease_alive"
    And it advises the same key
    And it says when to come again
    When the gateway answers
    Then the answer is 200

  Scenario: There is nothing to resolve
    Given an order of 1,000 yen is placed
    When Alice confirms the payment
    And the operator resolves the payment as charged
    Then the answer is 404
    And the problem is "not_found"
    And it advises to fix the request
    And Alice is charged once
