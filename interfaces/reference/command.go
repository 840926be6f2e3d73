package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

const (
	// placeholder stands where a reader's own token belongs.
	placeholder = "YOUR-TOKEN"
	// exampleKey is the key of all examples. In a command it is the shell's, a new one for each intent.
	exampleKey = "8e03978e-40d5-43dd-bc93-6894a57f9324"
)

// variables are where a command has its names from: what an earlier one has kept.
var variables = map[string]string{"orderId": "$ORDER", "journalEntryId": "$ENTRY", "key": "$KEY"}

// command is the operation's example for a shell. The command of the operation in After, then this one, work when they are
// pasted. example names the body; empty: the first one. Pages have no command: a browser shows them.
func (b builder) command(method, path string, o operation, example string) string {
	if success, _ := read[response](b.parts, o.Responses[0].Value); !strings.HasSuffix(success.Content[0].Name, "json") {
		return ""
	}
	address, line, newKey := b.reader.Base+path, "curl -sS", ""
	if o.Security == nil {
		line += " -H 'Authorization: Bearer " + b.token(o.Tags[0]) + "'"
	}
	query := url.Values{}
	for _, raw := range o.Parameters {
		p, _ := read[parameter](b.parts, raw)
		switch p.In {
		case "path":
			address = strings.ReplaceAll(address, "{"+p.Name+"}", variables[p.Name])
		case "query":
			if p.Required {
				query.Set(p.Name, fmt.Sprint(p.Example))
			}
		case "header":
			if p.Required {
				line += ` -H "` + p.Name + `: $KEY"`
				newKey = "KEY=" + strings.ToLower(o.OperationID) + "-$(date +%s%N)\n"
			}
		}
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	if o.RequestBody != nil {
		line += " -H 'Content-Type: application/json' -d " + b.body(o, example)
	}
	line += ` "` + address + `"`
	if len(o.Keeps) == 0 {
		return newKey + line + "; echo"
	}
	for variable, member := range o.Keeps {
		line = fmt.Sprintf(`%s=$(%s | sed -n 's/.*"%s":"\([^"]*\)".*/\1/p'); echo "$%s"`, variable, line, member, variable)
	}
	return newKey + line
}

// body is an example's body as a word of the shell.
func (b builder) body(o operation, example string) string {
	content, _ := read[mediaType](b.parts, o.RequestBody.Content[0].Value)
	at := max(0, slices.IndexFunc(content.Examples, func(f field) bool { return f.Name == example }))
	named, _ := read[struct{ Value json.RawMessage }](b.parts, content.Examples[at].Value)
	var short bytes.Buffer
	must(json.Compact(&short, named.Value))
	return "'" + strings.ReplaceAll(short.String(), exampleKey, `'"$KEY"'`) + "'"
}

func (b builder) token(tag string) string {
	for _, t := range b.Tags {
		if t.Name == tag && b.reader.Demo {
			return t.DemoToken
		}
	}
	return placeholder
}

// Commands are the lines that have to be pasted to see this operation at work, its own ones last; behind a "#" may be the
// name of an example. Error: there is no such operation, or it is a page.
func (r Reader) Commands(operationID string) (string, error) {
	b := builder{parts: parsed, reader: r}
	name, example, _ := strings.Cut(operationID, "#")
	for _, path := range b.Paths {
		methods, _ := read[fields](b.parts, path.Value)
		for _, method := range methods {
			o, _ := read[operation](b.parts, method.Value)
			if o.OperationID != name {
				continue
			}
			command := b.command(strings.ToUpper(method.Name), path.Name, o, example)
			if command == "" {
				return "", fmt.Errorf("reference: %s is a page", name)
			}
			if o.After == "" {
				return command, nil
			}
			before, err := r.Commands(o.After)
			return before + "\n" + command, err
		}
	}
	return "", fmt.Errorf("reference: there is no operation %s", name)
}
