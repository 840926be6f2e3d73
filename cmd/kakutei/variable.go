package main

import (
	"fmt"
	"reflect"
	"strings"
)

// variable is a setting: a variable of the environment and, unless it is a secret, a flag of the same name. The lists
// of variables in config.go are all there is: flags, help and checks follow from them. An option is a flag of one
// command alone, and no variable of the environment.
type variable struct {
	name    string // of the environment's; of an option: the flag's
	initial string // its value when it is not set or empty
	means   string // one line of the help
	set     func(text string) error
	secret  bool // then there is no flag: other users of the machine can read a command line
	bare    bool // no flag either: nothing for a user's hand
	option  bool
	toggle  bool // an option that is on or off: set is told "true" when it is given
	list    bool // an option that may be repeated: set is told each text
}

// option is a flag with a text that a command needs for itself.
func option(name string, into *string, means string) variable {
	return variable{name: name, means: means, option: true, set: func(text string) error {
		*into = text
		return nil
	}}
}

// toggle is a flag without a text.
func toggle(name string, into *bool, means string) variable {
	return variable{name: name, means: means, option: true, toggle: true, set: func(text string) error {
		*into = text == "true"
		return nil
	}}
}

// flag is the variable's name on the command line, without dashes: KAKUTEI_DB_POOL is db-pool.
func (v variable) flag() string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(v.name, "KAKUTEI_"), "_", "-"))
}

// field is the variable's name in the struct that kong fills: charge-id is CHARGE_ID.
func (v variable) field() string {
	return strings.ToUpper(strings.ReplaceAll(v.name, "-", "_"))
}

// flagged tells whether the variable is a flag, too.
func (v variable) flagged() bool { return !v.secret && !v.bare }

// flagsOf is a new struct for kong to fill: a field named like each variable that has a flag, nil unless its flag was
// given, and one for the arguments of a command that takes some.
func flagsOf(variables []variable, arguments bool) reflect.Value {
	var fields []reflect.StructField
	if arguments {
		fields = append(fields, reflect.StructField{
			Name: argumentsField, Type: reflect.TypeFor[[]string](), Tag: `arg:"" optional:"" name:"path"`,
		})
	}
	for _, v := range variables {
		if !v.flagged() {
			continue
		}
		kind := reflect.TypeFor[*string]()
		switch {
		case v.toggle:
			kind = reflect.TypeFor[*bool]()
		case v.list:
			kind = reflect.TypeFor[[]string]()
		}
		fields = append(fields, reflect.StructField{
			Name: v.field(),
			Type: kind,
			Tag:  reflect.StructTag(fmt.Sprintf(`name:%q sep:"none"`, v.flag())),
		})
	}
	return reflect.New(reflect.StructOf(fields))
}

// argumentsField is the name of the field for a command's arguments.
const argumentsField = "ARGUMENTS"

// settle gives each variable its value: the flag's, else the environment's, else the initial one. The error names what
// has a bad value.
func settle(variables []variable, flags reflect.Value, env func(string) string) error {
	for _, v := range variables {
		if v.list {
			for _, text := range flags.Elem().FieldByName(v.field()).Interface().([]string) {
				if err := v.set(text); err != nil {
					return fmt.Errorf("--%s: %w", v.flag(), err)
				}
			}
			continue
		}
		text, origin := "", "--"+v.flag()
		if !v.option {
			text, origin = env(v.name), v.name
		}
		if given, ok := flagValue(flags, v.field()); ok {
			text = given
			if !v.option {
				origin = fmt.Sprintf("--%s (%s)", v.flag(), v.name)
			}
		}
		if text == "" {
			text = v.initial
		}
		if err := v.set(text); err != nil {
			return fmt.Errorf("%s: %w", origin, err)
		}
	}
	return nil
}

func flagValue(flags reflect.Value, name string) (text string, given bool) {
	field := flags.Elem().FieldByName(name)
	if !field.IsValid() || field.IsNil() {
		return "", false
	}
	return fmt.Sprint(field.Elem().Interface()), true
}
