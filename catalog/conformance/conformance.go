// Package conformance checks whether a broker follows the rules of the Open Service Broker API. Run
// first sends requests that create nothing, and then, if the configuration names a service, orders
// an instance, updates it, binds it and returns everything.
//
// Source: Open Service Broker API, version 2.17. Each rule is a sentence with MUST in it.
package conformance

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Config describes a broker and how to reach it.
type Config struct {
	// URL is the address of the broker, to which /v2/catalog is appended.
	URL string
	// Authorize adds the credentials to a request.
	Authorize func(*http.Request)
	// Client sends the requests.
	Client *http.Client
	// Service and Plan are the names of the service and plan to order. If Service is empty, nothing is
	// ordered.
	Service, Plan string
	// Parameters are the parameters of the order. Context is the context of all orders.
	Parameters, Context map[string]any
	// Timeout limits each asynchronous operation. Interval is the time between two polls, unless the
	// broker requests another one.
	Timeout, Interval time.Duration
}

// Result is the result of a rule.
type Result struct {
	// Rule is the sentence. Problem describes how the broker violates it, or is empty if the broker
	// follows the rule.
	Rule, Problem string
}

// checker sends requests and collects results.
type checker struct {
	Config
	catalog catalog
	results []Result
}

// Run checks a broker and returns a result for each rule. It fails if the broker has no catalog, or
// if an operation does not end, because no other rule can be checked then.
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

// expect records a rule about the status of a response.
func (c *checker) expect(rule string, got response, codes ...int) {
	for _, code := range codes {
		if got.code == code {
			c.rule(rule)
			return
		}
	}
	c.rule(rule, fmt.Sprintf("the status is %d (%s), want one of %v", got.code, got.description(), codes))
}
