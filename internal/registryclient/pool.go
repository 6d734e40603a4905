package registryclient

import (
	"net/http"

	"github.com/slipway-platform/slipway/internal/outbound"
)

// Pool contains the resources that all registry reads in a process share: connections, the rules
// for their targets, and a memory budget.
type Pool struct {
	budget           *Budget
	secure, insecure http.RoundTripper
}

// NewPool returns a pool that connects with a dialer. Its budget allows imports of the given number
// of images. 0 means the maximum budget.
func NewPool(dialer *outbound.Dialer, images int) *Pool {
	return &Pool{budget: NewBudget(images), secure: dialer.Transport(false), insecure: dialer.Transport(true)}
}

// Open begins work for a project. The caller must close the account. Open can return ErrBusy.
func (p *Pool) Open(project string) (*Account, error) { return p.budget.Open(project) }

// Join begins work for a project. The caller must limit how much work runs at the same time. The
// caller must close the account.
func (p *Pool) Join(project string) *Account { return p.budget.Join(project) }

// Client returns a client without credentials. If insecure is set, the client accepts every
// certificate, and uses HTTP if the registry does not serve HTTPS. With a nil account, the client
// must only stream blobs.
func (p *Pool) Client(account *Account, insecure bool) Client {
	client := Client{Insecure: insecure, Account: account, Transport: p.secure}
	if insecure {
		client.Transport = p.insecure
	}
	return client
}
