package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/alecthomas/kong"
)

// command is one of the program's commands. It is made anew for each call of the program, so that run may keep in its
// closure what the variables have set.
type command struct {
	name      string
	does      string // one line of the help
	variables []variable
	arguments *[]string // where what is no flag goes; nil: there must be nothing else
	run       func(ctx context.Context, p program) error
}

// commands lists them in the order of the help.
func commands() []command {
	return []command{
		serveCommand(), migrateCommand(), sweepCommand(), stuckCommand(), releaseCommand(), resolveCommand(),
		reconcileCommand(), gatewayCommand(), scenarioCommand(), postingKeyCommand(), tokenCommand(), versionCommand(),
		helpCommand(),
	}
}

// errHelp is how parsing ends when --help is met.
var errHelp = errors.New("help is asked for")

// helpFlag is --help, which works anywhere, also where something else is missing.
type helpFlag bool

// BeforeReset is called by kong when the flag was given, before it looks for what is missing.
func (helpFlag) BeforeReset() error { return errHelp }

// execute finds the command that the arguments name, gives its variables their values and runs it.
func execute(ctx context.Context, p program, all []command) error {
	var global struct {
		Help helpFlag `short:"h"`
	}
	options := []kong.Option{kong.Name("kakutei"), kong.NoDefaultHelp()}
	flags := make(map[string]reflect.Value, len(all))
	for _, c := range all {
		flags[c.name] = flagsOf(c.variables, c.arguments != nil)
		options = append(options, kong.DynamicCommand(c.name, c.does, "", flags[c.name].Interface()))
	}
	parser, err := kong.New(&global, options...)
	if err != nil {
		return fmt.Errorf("build the command line: %w", err)
	}
	parsed, err := parser.Parse(p.args)
	switch {
	case errors.Is(err, errHelp):
		printHelp(p.stdout, all)
		return nil
	case err != nil:
		return fmt.Errorf("%w (see kakutei help)", err)
	}
	for _, c := range all {
		if c.name != parsed.Selected().Name {
			continue
		}
		if err := settle(c.variables, flags[c.name], p.env); err != nil {
			return err
		}
		if c.arguments != nil {
			*c.arguments, _ = flags[c.name].Elem().FieldByName(argumentsField).Interface().([]string)
		}
		return c.run(ctx, p)
	}
	return fmt.Errorf("no such command: %s", parsed.Command())
}
