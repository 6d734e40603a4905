// Package conformance checks whether a broker complies with the Open Service Broker API. Run first
// sends requests that create nothing. If the configuration specifies a service, Run then creates an
// instance, updates and binds it, and deletes the binding and the instance.
//
// Source: Open Service Broker API, version 2.17. Each rule is a sentence in the specification that
// contains MUST.
package conformance

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Config describes a broker and how to connect to it.
type Config struct {
	// URL is the broker's base URL. The path of the catalog below this URL is /v2/catalog.
	URL string
	// Authorize adds the credentials to a request.
	Authorize func(*http.Request)
	// Client is the HTTP client that sends the requests.
	Client *http.Client
	// Service and Plan are the names of the service and the plan to provision. If Service is empty,
	// nothing is provisioned.
	Service, Plan string
	// Parameters contains the parameters for provisioning. Context is the context of all
	// provisioning requests.
	Parameters, Context map[string]any
	// Timeout is the timeout for each asynchronous operation. Interval is the interval between
	// polls, unless the broker requests a different interval.
	Timeout, Interval time.Duration
}

// Result is the result of checking a rule.
type Result struct {
	// Rule is the sentence in the specification. Problem describes how the broker violates the
	// rule. Problem is empty if the broker complies with the rule.
	Rule, Problem string
}

// checker sends requests and collects results.
type checker struct {
	Config
	catalog catalog
	results []Result
}

// Run checks a broker and returns a result for each rule. It returns an error if the broker has no
// catalog or if an operation does not finish, because the remaining rules cannot be checked.
func Run(ctx context.Context, config Config) ([]Result, error) {
	c := &checker{Config: config}
	if err := c.readCatalog(ctx); err != nil {
		return c.results, err
	}
	c.checkCatalog()
	for _, check := range []func(context.Context) error{c.checkHeaders, c.checkUnknown, c.checkInvalid} {
		if err := check(ctx); err != nil {
			return c.results, err
		}
	}
	if c.Service == "" {
		return c.results, nil
	}
	return c.results, c.checkLifecycle(ctx)
}

// rule records a rule and its violations.
func (c *checker) rule(rule string, problems ...string) {
	if len(problems) == 0 {
		problems = []string{""}
	}
	for _, problem := range problems {
		c.results = append(c.results, Result{rule, problem})
	}
}

// expect records a rule about a response's status code.
func (c *checker) expect(rule string, got response, codes ...int) {
	for _, code := range codes {
		if got.code == code {
			c.rule(rule)
			return
		}
	}
	c.rule(rule, fmt.Sprintf("the status is %d (%s), want one of %v", got.code, got.description(), codes))
}

// expectError records a rule about the error code in a response's body.
func (c *checker) expectError(rule string, got response, want string) {
	if code := got.text("error"); code != want {
		c.rule(rule, fmt.Sprintf("the error is %q", code))
		return
	}
	c.rule(rule)
}
