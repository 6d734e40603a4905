package registryclient

import (
	"net/http"

	"github.com/slipway-platform/slipway/internal/outbound"
)

// Pool is what all reads of registries for users share in a process: connections, the rules where
// those may lead, and a budget of memory.
type Pool struct {
	budget           *Budget
	secure, insecure http.RoundTripper
}

// NewPool returns a pool whose connections a dialer makes. It has memory for imports of so many
// images; 0 means as many as there are.
func NewPool(dialer *outbound.Dialer, images int) *Pool {
	return &Pool{budget: NewBudget(images), secure: dialer.Transport(false), insecure: dialer.Transport(true)}
}

// Open begins a piece of work for a project. The caller closes the account. Errors: ErrBusy.
func (p *Pool) Open(project string) (*Account, error) { return p.budget.Open(project) }

// Join begins a piece of work for a project whose number is bounded elsewhere. The caller closes
// the account.
func (p *Pool) Join(project string) *Account { return p.budget.Join(project) }

// Client returns a client for a piece of work, without credentials. If insecure is set it accepts
// every certificate, and HTTP where HTTPS does not answer. Without an account the client may only
// stream blobs.
func (p *Pool) Client(account *Account, insecure bool) Client {
	client := Client{Insecure: insecure, Account: account, Transport: p.secure}
	if insecure {
		client.Transport = p.insecure
	}
	return client
}
