package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
)

// maxSet is the largest key set, in bytes: providers that write a certificate chain beside each key need some 20 KiB.
const maxSet = 256 << 10

// Source is where a key set is read. Its errors name neither a path nor a URL.
type Source func(ctx context.Context) ([]byte, error)

// File is the key set in a file.
func File(path string) Source {
	return func(context.Context) ([]byte, error) {
		about, err := os.Stat(path)
		if err != nil {
			return nil, bare(err)
		}
		if !about.Mode().IsRegular() { // opening a pipe would wait for a writer
			return nil, errors.New("it is not a file")
		}
		file, err := os.Open(path) //nolint:gosec // the file that the operator's own setting names
		if err != nil {
			return nil, bare(err)
		}
		defer func() { _ = file.Close() }() // it was only read
		return all(file)
	}
}

// URL is the key set that a provider publishes.
func URL(address string) Source {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 64 << 10
	client := &http.Client{
		Timeout: readTimeout, Transport: transport,
		// Keys come from the address that was configured or not at all.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context) ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, errors.New("the address cannot be used")
		}
		request.Header.Set("Accept", "application/jwk-set+json, application/json")
		response, err := client.Do(request)
		if err != nil {
			return nil, bare(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("the provider answers %d", response.StatusCode)
		}
		return all(response.Body)
	}
}

func all(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxSet+1))
	if err != nil {
		return nil, bare(err)
	}
	if len(text) > maxSet {
		return nil, fmt.Errorf("it is larger than %d bytes", maxSet)
	}
	return text, nil
}

// bare is the error without the address or path that it is about: a query may be a secret.
func bare(err error) error {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		return inURL.Err
	}
	var inPath *os.PathError
	if errors.As(err, &inPath) {
		return inPath.Err
	}
	return err
}
