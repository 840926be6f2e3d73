package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kakutei/interfaces/identity"
)

func tokenCommand() command {
	var (
		mint             mintConfig
		actor, companies string
		scope            string
		ttl              time.Duration
	)
	return command{
		name: "token",
		does: "mint a token for development, signed with KAKUTEI_JWT_SECRET, and print it alone",
		variables: append(mint.variables(),
			option("actor", &actor, "whose token it is"),
			option("companies", &companies, "companies that it may post for, with commas between them"),
			option("scope", &scope, "words with blanks between them; operator makes an operator"),
			variable{
				name: "ttl", initial: "1h", option: true, set: into(&ttl, positive),
				means: "how long it is valid (1h)",
			},
		),
		run: func(_ context.Context, p program) error {
			switch {
			case mint.secret.IsZero():
				return errors.New("KAKUTEI_JWT_SECRET: there is no secret to sign with")
			case actor == "":
				return errors.New("--actor: whose token shall it be?")
			}
			token, err := mint.secret.Mint(identity.Grant{
				Actor: actor, Companies: listed(companies), Scope: scope, Until: time.Now().Add(ttl),
				Audience: mint.audience, Issuer: mint.issuer,
			})
			if err != nil {
				return err
			}
			fmt.Fprintln(p.stdout, token)
			return nil
		},
	}
}

// listed is a list with commas; empty is none.
func listed(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
