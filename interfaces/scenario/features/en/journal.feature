@journal @recipe
Feature: A document is booked once, whoever posts it how often

  The second recipe: the key follows from the document.

  @normal
  Scenario: An invoice is booked
    Given the invoice "inv-1" of 110,000 yen
    When Alice posts it
    Then the answer is 201
    And the answer has the header "Location"
    And the answer's status is "created"
    And its key follows from the document
    When Alice asks for the entry
    Then the answer is 200
    And the entry is balanced

  @normal
  Scenario: A credit note is booked the other way round
    Given the credit note "cn-1" of 5,000 yen
    When Alice posts it
    Then the answer is 201
    And its key follows from the document
    When Alice asks for the entry
    Then the answer's total is "-5000"
    And the entry is balanced

  @duplicate
  Scenario: The night's job is run twice
    Given the invoice "inv-1" of 110,000 yen
    When Alice posts it
    And Alice posts it
    Then the answer is 200
    And the answer is a replay
    And the answer's isRetry is "true"
    And every answer names the same entry
    And the audit log tells of "duplicate"

  @duplicate
  Scenario: The answer to a posting is lost
    Given the invoice "inv-1" of 110,000 yen
    When Alice posts it, but the answer is lost
    Then no answer comes
    When Alice posts it
    Then the answer is 200
    And every answer names the same entry

  @duplicate
  Scenario: Whoever wants a repeat to be an error gets one
    Given the invoice "inv-1" of 110,000 yen
    When Alice posts it
    And Alice posts it strictly
    Then the answer is 409
    And the problem is "duplicate_operation"
    And it advises never to send it again
    And the answer is a replay
    And the answer has the header "Preference-Applied"
    And the answer's error.code is "DUPLICATE_OPERATION"
    And every answer names the same entry

  @concurrent
  Scenario: Twenty post it at once
    Given the invoice "inv-1" of 110,000 yen
    When Alice posts it 20 times at once
    Then exactly one answer is 201
    And every answer names the same entry

  @reuse
  Scenario: The same document with other lines
    Given the invoice "inv-1" of 110,000 yen
    When Alice posts it
    And Alice posts it with other lines
    Then the answer is 422
    And the problem is "idempotency_key_reused"
    And it advises a new key
    And the answer's error.code is "DUPLICATE_OPERATION_MISMATCH"
    And every answer names the same entry
    And the audit log tells of "mismatch"

  @reuse
  Scenario: A new version is a new entry
    Given the invoice "inv-1" of 110,000 yen
    When Alice posts it
    And Alice posts its next version
    Then the answer is 201
    And its key follows from the document

  @expiry
  Scenario: An entry never expires
    Given the invoice "inv-1" of 110,000 yen
    When Alice posts it
    And 9000 hours pass
    And Alice posts it
    Then the answer is 200
    And every answer names the same entry

  @answers
  Scenario: A component of the key is missing
    Given the invoice "inv-1" of 110,000 yen
    When Alice posts it without a service date
    Then the answer is 400
    And the problem is "invalid_request"
    And the answer's error.code is "IDEMPOTENCY_KEY_GENERATION_FAILED"
    And it advises to fix the request

  @answers
  Scenario: The lines do not balance
    Given the invoice "inv-1" of 110,000 yen
    When Alice posts it with lines that do not balance
    Then the answer is 400
    And the problem is "invalid_request"
    And it advises to fix the request
    When Alice posts it
    Then the answer is 201

  @answers
  Scenario: The token does not name the company
    Given the invoice "inv-1" of 110,000 yen
    When Alice posts it for another company
    Then the answer is 403
    And the problem is "forbidden"
    And it advises to fix the request

  @answers
  Scenario: Another company's entry does not exist
    Given the invoice "inv-1" of 110,000 yen
    When Alice posts it
    And a bookkeeper of another company asks for the entry
    Then the answer is 404
    And the problem is "not_found"

  @crash
  Scenario: The service crashes between two postings
    Given the invoice "inv-1" of 110,000 yen
    When Alice posts it, but the answer is lost
    And the service crashes
    And the service is started again
    And Alice posts it
    Then the answer is 200
    And every answer names the same entry
