@payments @defence
Feature: Three lines stand between a shopper and a second charge

  Scenario: The first line is the record: one key, one answer
    Given an order of 1,000 yen is placed
    When Alice confirms the payment
    And she sends the same request 5 times at once
    Then every answer is the same or advises the same key
    And exactly one answer is no replay
    And Alice is charged once

  Scenario: The second line is the order: ten tabs, ten keys
    Given an order of 1,000 yen is placed
    When Alice confirms the payment in 10 tabs at once
    Then the answer is 200
    And every receipt names the same payment
    And the payment is booked once
    And Alice is charged once

  Scenario: The second line is the order: the error page made a new key
    Given an order of 1,000 yen is placed
    When Alice confirms the payment, but the answer is lost
    And Alice confirms the payment with the key "made-anew"
    Then the answer is 200
    And the answer is not a replay
    And every receipt names the same payment
    And Alice is charged once

  Scenario: The third line is the key towards the gateway: the answer was lost there
    Given an order of 1,000 yen is placed
    And the gateway takes the money and loses the answer
    When Alice confirms the payment
    Then the answer is 503
    And the problem is "outcome_unknown"
    When she sends the same request again
    Then the answer is 200
    And the order is paid
    And Alice is charged once

  Scenario: The third line holds when the key has expired and the payment is still open
    Given an order of 1,000 yen is placed
    And the gateway takes the money and loses the answer
    When Alice confirms the payment
    And 25 hours pass
    And she sends the same request again
    Then the answer is 200
    And the payment is booked once
    And Alice is charged once
