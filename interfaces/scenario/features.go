package scenario

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/cucumber/godog"
)

// builtIn are the features that come with the program, in a directory per language.
//
//go:embed features
var builtIn embed.FS

// features is what was read.
type features struct {
	options   godog.Options
	scenarios func() int
	steps     func() int
	each      func(func(place string, s *godog.Step))
}

// read parses the files. The error is one line that names what cannot be read.
func (c Config) read() (features, error) {
	options := godog.Options{Paths: c.Paths, Dialect: string(c.Language)}
	if len(c.Paths) == 0 {
		options.FS = builtIn
		for _, l := range Languages {
			if c.Language == "" || c.Language == l {
				options.Paths = append(options.Paths, path.Join("features", string(l)))
			}
		}
	}
	all := options
	documents, err := godog.TestSuite{Options: &all}.RetrieveFeatures()
	if err != nil {
		return features{}, c.guessing(err)
	}
	found := map[string]bool{}
	for _, d := range documents {
		found[d.Uri] = true
	}
	for _, p := range c.Paths {
		if !anyBelow(found, p) {
			return features{}, fmt.Errorf("%s holds no scenario: it has no Gherkin, or no *.feature file, or nothing in that line", p)
		}
	}
	chosen := options
	chosen.Tags = c.Tags
	documents, err = godog.TestSuite{Options: &chosen}.RetrieveFeatures()
	if err != nil {
		return features{}, err
	}
	f := features{options: options}
	scenarios, steps := 0, 0
	for _, d := range documents {
		scenarios += len(d.Pickles)
		for _, p := range d.Pickles {
			steps += len(p.Steps)
		}
	}
	if scenarios == 0 {
		return features{}, errors.New("no scenario has such tags: " + c.Tags)
	}
	f.scenarios, f.steps = func() int { return scenarios }, func() int { return steps }
	f.each = func(do func(string, *godog.Step)) {
		for _, d := range documents {
			for _, p := range d.Pickles {
				for _, s := range p.Steps {
					do(fmt.Sprintf("%s:%d", d.Uri, d.FindStep(s.AstNodeIds[0]).Location.Line), s)
				}
			}
		}
	}
	return f, nil
}

// guessing adds to the parser's error what it does not know: how people come to such a file.
func (c Config) guessing(err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "(1:1): expected") && strings.Contains(text, "got '\ufeff"):
		return fmt.Errorf("%w (it begins with a byte order mark: save it as UTF-8 without one)", err)
	case c.Language != Japanese && strings.Contains(text, "機能:"):
		return fmt.Errorf("%w (if it is Japanese, its first line is # language: ja, or take --lang ja)", err)
	default:
		return err
	}
}

// anyBelow tells whether a file was read that the path names, or one in the directory that it names.
func anyBelow(found map[string]bool, p string) bool {
	for file := range found {
		if file == p || strings.HasPrefix(file, strings.TrimSuffix(path.Clean(p), "/")+"/") || path.Clean(p) == "." {
			return true
		}
	}
	return false
}

// knows is an error that lists the steps that are not in the vocabulary.
func (r *runner) knows(read features) error {
	var unknown []string
	listed := map[string]bool{}
	read.each(func(place string, s *godog.Step) {
		for _, p := range r.phrases {
			if p.pattern.MatchString(s.Text) {
				return
			}
		}
		if line := fmt.Sprintf("%s: %s", place, s.Text); !listed[line] {
			listed[line] = true
			unknown = append(unknown, line)
		}
	})
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("not in the vocabulary (see kakutei scenario steps): %s", strings.Join(unknown, "; "))
}
