@payments @unknown
Feature: An outcome that nobody knows is found out, not guessed

  Scenario: The client insists until it knows
    Given an order of 1,000 yen is placed
    And the gateway takes the money and loses the answer
    When Alice's client confirms the payment and insists
    Then the answer is 200
    And the order is paid
    And Alice is charged once

  Scenario: The gateway fails before it has done anything
    Given an order of 1,000 yen is placed
    And the gateway fails once
    When Alice confirms the payment
    Then the answer is 503
    And Alice is not charged

  Scenario: The retry after the gateway's failure charges once
    Given an order of 1,000 yen is placed
    And the gateway fails once
    When Alice confirms the payment
    And she sends the same request again
    Then the answer is 200
    And Alice is charged once

  Scenario: The shopper has closed the page, and the service finishes
    Given an order of 1,000 yen is placed
    And the gateway takes the money and loses the answer
    When Alice confirms the payment
    And the recovery makes its round
    Then the order is paid
    And the outcome is "SUCCEEDED"
    When she sends the same request again
    Then the answer is a replay
    And the payment is booked once
    And Alice is charged once

  Scenario: While the outcome is unknown no other key may pay
    Given an order of 1,000 yen is placed
    And the gateway is down
    When Alice confirms the payment
    And the gateway works again
    And Alice confirms the payment
    Then the answer is 409
    And the problem is "payment_in_progress"
    And Alice is not charged
