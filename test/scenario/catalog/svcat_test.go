package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/client-go/util/jsonpath"

	"github.com/slipway-platform/slipway/test/kit"
)

// exchange is a request that svcat sends, and the values that svcat needs from the response.
type exchange struct {
	command, method, path string
	// body is the request body. If patches is set, it is a merge patch to apply to the last
	// response.
	body    string
	patches bool
	code    int
	wants   []want
}

// want is the expected value at a JSONPath. An empty value matches any value. If repeat is set, the
// test repeats the request until the response contains the value.
type want struct {
	path, value string
	repeat      bool
}

// exchanges parses a file in the format of testdata/svcat.txt.
func exchanges(t *testing.T, file string, variables *strings.Replacer) (all []exchange) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	command := ""
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSuffix(variables.Replace(line), "\n")
		kind, rest, _ := strings.Cut(line, " ")
		switch {
		case kind == "$":
			command = rest
		case kind == ">":
			method, path, _ := strings.Cut(rest, " ")
			all = append(all, exchange{command: command, method: method, path: path})
		case command == "":
		case strings.HasPrefix(line, "{"):
			all[len(all)-1].body = line
		case kind == "PATCH":
			_, patch, _ := strings.Cut(line, "RESPONSE ")
			all[len(all)-1].body, all[len(all)-1].patches = patch, true
		case kind == "<":
			if all[len(all)-1].code, err = strconv.Atoi(rest); err != nil {
				t.Fatal(err)
			}
		case kind == "=" || kind == "~":
			end := strings.LastIndex(rest, "}") + 1
			all[len(all)-1].wants = append(all[len(all)-1].wants, want{rest[:end], strings.TrimSpace(rest[end:]), kind == "~"})
		}
	}
	return all
}

// check returns an error if the response does not have the expected value.
func (w want) check(response []byte) error {
	var object any
	if err := json.Unmarshal(response, &object); err != nil {
		return fmt.Errorf("the response is not JSON: %s", response)
	}
	path := jsonpath.New("want")
	path.AllowMissingKeys(true)
	if err := path.Parse(w.path); err != nil {
		return err
	}
	var got bytes.Buffer
	if err := path.Execute(&got, object); err != nil {
		return err
	}
	if w.value == "" && got.Len() > 0 || w.value != "" && got.String() == w.value {
		return nil
	}
	return fmt.Errorf("%s is %q, want %q, in %.2000s", w.path, got.String(), w.value, response)
}

func TestRequestsOfSvcatAreServed(t *testing.T) {
	c := kit.Shared(t)
	b := startQueueBroker(t, c)
	b.register(c)
	client := c.Administrator().Rest
	var last []byte
	for _, e := range exchanges(t, "testdata/svcat.txt", strings.NewReplacer("${NAMESPACE}", c.Namespace)) {
		body := []byte(e.body)
		if e.patches {
			var err error
			if body, err = jsonpatch.MergePatch(last, body); err != nil {
				t.Fatal(err)
			}
		}
		send := func(ctx context.Context) error {
			request := client.Verb(e.method).RequestURI(e.path)
			if len(body) > 0 {
				request.SetHeader("Content-Type", "application/json").Body(body)
			}
			code := 0
			response, err := request.Do(ctx).StatusCode(&code).Raw()
			if code == 0 {
				return err
			}
			last = response
			if code != e.code {
				return fmt.Errorf("the status is %d, want %d: %s", code, e.code, response)
			}
			for _, want := range e.wants {
				if err := want.check(response); err != nil {
					return err
				}
			}
			return nil
		}
		description := fmt.Sprintf("%s: %s %s", e.command, e.method, e.path)
		if len(e.wants) > 0 && e.wants[0].repeat {
			c.WaitFor(description, send)
		} else if err := send(t.Context()); err != nil {
			t.Errorf("%s: %v", description, err)
		}
	}
	if state := b.state(); len(state.Resources) > 0 || len(state.Violations) > 0 {
		t.Errorf("the broker has %+v", state)
	}
}
