package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"kakutei/interfaces/scenario/conformance"
)

// runProfile checks an endpoint against the draft: the one that the file describes, or this service's own.
func (c *scenarioConfig) runProfile(ctx context.Context, p program) error {
	if c.target == "" {
		return errors.New("--profile: needs --target URL, the service to check")
	}
	if err := baseURL(c.target); err != nil {
		return fmt.Errorf("--target: %w", err)
	}
	write := conformance.WriteTable
	switch c.format {
	case "pretty":
	case "junit":
		write = conformance.WriteJUnit
	default:
		return fmt.Errorf("--format: a profile has pretty and junit, not %s", c.format)
	}
	endpoint, err := c.endpoint()
	if err != nil {
		return err
	}
	results, err := conformance.Check(ctx, c.target, endpoint)
	if err != nil {
		return err
	}
	if err := write(p.stdout, endpoint.Name, results); err != nil {
		return err
	}
	if _, failed, _, _ := conformance.Count(results); failed > 0 {
		return fmt.Errorf("%d checks failed", failed)
	}
	return nil
}

func (c *scenarioConfig) endpoint() (conformance.Endpoint, error) {
	switch len(c.paths) {
	case 0:
		return conformance.Kakutei()
	case 1:
	default:
		return conformance.Endpoint{}, errors.New("--profile: one file describes the endpoint, not several")
	}
	file, err := os.Open(c.paths[0])
	if err != nil {
		return conformance.Endpoint{}, err
	}
	e, err := conformance.Read(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return conformance.Endpoint{}, fmt.Errorf("%s: %w", c.paths[0], err)
	}
	return e, nil
}
