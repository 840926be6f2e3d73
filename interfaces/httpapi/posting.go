package httpapi

import (
	"errors"
	"slices"
	"strings"

	"kakutei/domain/fault"
	"kakutei/domain/journal"
	"kakutei/domain/money"
)

// components are the members that the posting key is made of.
var components = []string{"companyId", "sourceDocumentType", "sourceDocumentId", "version", "serviceDate", "total"}

// recipeError is the member error of the recipe that the journal's clients know.
type recipeError struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details *recipeDetails `json:"details,omitempty"`
}

const memberError = "error"

// ReadPosting reads the body of a posting request. The error is a fault.Invalid that names what is wrong; its member
// error says so if no posting key can be made.
func ReadPosting(body []byte) (journal.Content, error) {
	var (
		source journal.SourceDocument
		kind   string
		day    string
		unit   = money.JPY
		lines  []journal.Line
	)
	wrong, err := readObject(body,
		required("companyId", plain(&source.Company)),
		required("sourceDocumentType", plain(&kind)),
		required("sourceDocumentId", plain(&source.ID)),
		optional("version", version(&source.Version)),
		required("serviceDate", plain(&day)),
		required("total", integer(&source.Total, -money.MaxUnits, money.MaxUnits)),
		optional("currency", currency(&unit)),
		optional("lines", list(maxPostingLines, func() reader {
			lines = append(lines, journal.Line{})
			line := &lines[len(lines)-1]
			return object(
				required("account", plain(&line.Account)),
				required("side", plain((*string)(&line.Side))),
				required("amount", integer(&line.Amount, 1, money.MaxUnits)),
			)
		})),
	)
	if err != nil {
		return journal.Content{}, err
	}
	source.Type = journal.DocumentType(kind)
	source.ServiceDate, _ = journal.ParseDate(day) // no date is one of the things that Check refuses
	content, err := journal.NewContent(source, unit, lines)
	if wrong = merged(wrong, wrongIn(err)); len(wrong) > 0 {
		return journal.Content{}, refusedPosting(wrong)
	}
	return content, err
}

// maxPostingLines is more lines than a body can hold.
const maxPostingLines = maxBody

// version expects a version. One that is none is not left out: the document's check refuses it, too.
func version(into *int64) reader {
	return func(f *form, field string) error {
		*into = -1
		return integer(into, 0, journal.MaxVersion)(f, field)
	}
}

// refusedPosting names the components first, and no more than a decoder does.
func refusedPosting(wrong []fault.Violation) error {
	var ofKey, others []fault.Violation
	for _, v := range wrong {
		if slices.Contains(components, v.Field) {
			ofKey = append(ofKey, v)
		} else {
			others = append(others, v)
		}
	}
	all := slices.Concat(ofKey, others)
	invalid := fault.Invalid(all[:min(len(all), maxViolations)]...)
	if len(ofKey) == 0 {
		return invalid
	}
	return invalid.With(memberError, recipeError{
		Code: "IDEMPOTENCY_KEY_GENERATION_FAILED", Message: "the posting key cannot be made: " + ofKey[0].String(),
	})
}

func wrongIn(err error) []fault.Violation {
	var f *fault.Fault
	if !errors.As(err, &f) {
		return nil
	}
	return f.Violations()
}

// merged adds what the domain found to what the decoder found, a field at a time: what could not be read need not be
// judged.
func merged(decoded, judged []fault.Violation) []fault.Violation {
	all := slices.Clone(decoded)
	for _, v := range judged {
		known := slices.ContainsFunc(decoded, func(d fault.Violation) bool {
			return d.Field == v.Field || strings.HasPrefix(d.Field, v.Field+"/")
		})
		if !known {
			all = append(all, v)
		}
	}
	return all
}
