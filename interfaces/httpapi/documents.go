package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"

	"kakutei/domain/fault"
)

const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json" // RFC 9457
)

// Documents writes outcomes as clients read them: compact JSON without HTML escapes and without a final newline. It
// implements port.Documents.
type Documents struct{}

// Result writes a view. Error: what encoding/json cannot write.
func (Documents) Result(view any) ([]byte, error) { return compact(view) }

// Problem writes a refusal as a problem document that names no request. Error: the refusal has a code that is not
// published, or a member that encoding/json cannot write.
func (Documents) Problem(refusal *fault.Fault) ([]byte, error) {
	return problemDocument(refusal, origin{})
}

// origin is the request that a problem is answered to. A recorded problem has none.
type origin struct{ requestID, traceID string }

// problemDocument has its members in a fixed order: those of RFC 9457, code and retry, then those of the single case.
func problemDocument(f *fault.Fault, o origin) ([]byte, error) {
	p, published := problemsByCode[f.Code()]
	if !published {
		return nil, fmt.Errorf("httpapi: %q is no published code", f.Code())
	}
	document, err := compact(struct {
		Type   string       `json:"type"`
		Title  string       `json:"title"`
		Status int          `json:"status"`
		Detail string       `json:"detail"`
		Code   fault.Code   `json:"code"`
		Retry  fault.Advice `json:"retry"`
	}{"/problems/" + string(f.Code()), p.title, p.status, f.Detail(), f.Code(), f.Advice()})
	if err != nil {
		return nil, err
	}
	members := f.Members()
	if wrong := f.Violations(); len(wrong) > 0 {
		members = append(members, fault.Member{Name: "errors", Value: pointed(wrong)})
	}
	if o.requestID != "" {
		members = append(members, fault.Member{Name: "requestId", Value: o.requestID})
	}
	if o.traceID != "" {
		members = append(members, fault.Member{Name: "traceId", Value: o.traceID})
	}
	document = document[:len(document)-1]
	for _, m := range members {
		member, err := compact(map[string]any{m.Name: m.Value})
		if err != nil {
			return nil, err
		}
		document = append(append(document, ','), member[1:len(member)-1]...)
	}
	return append(document, '}'), nil
}

// partError is one of a problem's errors. The pointer (RFC 6901) leads into the body, empty for the whole of it; what
// is wrong with query or path has none.
type partError struct {
	Pointer *string `json:"pointer,omitempty"`
	Detail  string  `json:"detail"`
}

func pointed(wrong []fault.Violation) []partError {
	parts := make([]partError, len(wrong))
	for i, v := range wrong {
		pointer := ""
		if v.Field != "" {
			pointer = "/" + v.Field
		}
		parts[i] = partError{Pointer: &pointer, Detail: v.Detail}
	}
	return parts
}

// statusOf is the HTTP status of a stored refusal. A code that only a later version knows has its status in the
// document that this later version has stored.
func statusOf(refusal fault.Code, document []byte) (int, error) {
	if p, published := problemsByCode[refusal]; published {
		return p.status, nil
	}
	var stored struct {
		Status int `json:"status"`
	}
	if err := json.Unmarshal(document, &stored); err != nil || stored.Status < 400 || stored.Status > 499 {
		return 0, fmt.Errorf("httpapi: no status for the stored refusal %q", refusal)
	}
	return stored.Status, nil
}

func compact(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}
