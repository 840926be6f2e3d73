package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"kakutei/domain/fault"
	"kakutei/interfaces/httpapi"
)

// maxPosting is more than the service takes, in bytes.
const maxPosting = 1 << 20

func postingKeyCommand() command {
	return command{
		name: "posting-key",
		does: "read a posting request as JSON on stdin, print the text that is hashed and the key",
		run: func(_ context.Context, p program) error {
			body, err := io.ReadAll(io.LimitReader(p.stdin, maxPosting))
			if err != nil {
				return fmt.Errorf("stdin: %w", err)
			}
			content, err := httpapi.ReadPosting(body)
			if err != nil {
				return allOf(err)
			}
			fmt.Fprintf(p.stdout, "%s\n%s\n", content.Source.PostingText(), content.Source.PostingKey())
			return nil
		},
	}
}

// allOf lists everything that is wrong with a request, field by field.
func allOf(err error) error {
	f, isFault := fault.From(err)
	if !isFault {
		return err
	}
	var all []string
	for _, v := range f.Violations() {
		all = append(all, v.String())
	}
	return errors.New(strings.Join(all, "; "))
}
