package auditlog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

const (
	// localParameter is the query parameter that limits a search to the log of the master that
	// receives the request.
	localParameter = "local"
	// dialTimeout and masterTimeout limit how long a search waits for another master.
	dialTimeout   = 3 * time.Second
	masterTimeout = searchTimeout - 5*time.Second
	// maxResponse is the maximum size of another master's response in bytes.
	maxResponse = 4 << 20
)

// Missing is a master whose log is missing from a result, and the reason.
type Missing struct {
	Master string `json:"master"`
	Reason string `json:"reason"`
}

// Masters finds the other masters of a cluster, and authenticates requests to them.
type Masters struct {
	// Name is the name of this master's node.
	Name string
	// URLs returns the addresses of all masters' API servers, keyed by the names of the masters'
	// nodes. It returns no addresses if the cluster has never had more than one master.
	URLs func(context.Context, kubernetes.Interface) (map[string]string, error)
	// CAFile verifies the masters. CertFile and KeyFile authenticate this master as a front proxy.
	// Its requests contain the user's name, so that the other masters check the user's permissions.
	CAFile, CertFile, KeyFile string
}

// transport returns the HTTP transport for requests to other masters.
func (m Masters) transport() (http.RoundTripper, error) {
	return rest.TransportFor(&rest.Config{
		TLSClientConfig: rest.TLSClientConfig{CAFile: m.CAFile, CertFile: m.CertFile, KeyFile: m.KeyFile},
		Dial:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
	})
}

// answer is the result of one master's search.
type answer struct {
	master string
	result Result
	err    error
}

// searchAll searches the logs of all masters. own searches this master's log.
func (m Masters) searchAll(ctx context.Context, kube kubernetes.Interface, through http.RoundTripper, query url.Values, own func(context.Context) (Result, error)) (Result, error) {
	urls := map[string]string{}
	if !query.Has(localParameter) {
		var err error
		if urls, err = m.URLs(ctx, kube); err != nil {
			return Result{}, err
		}
		delete(urls, m.Name)
	}
	if len(urls) == 0 {
		return own(ctx)
	}
	sender, _ := request.UserFrom(ctx)
	client := &http.Client{Transport: asUser(sender, through), Timeout: masterTimeout}
	answers := []answer{{master: m.Name}}
	for name := range urls {
		answers = append(answers, answer{master: name})
	}
	var group sync.WaitGroup
	for i := range answers {
		a := &answers[i]
		group.Go(func() {
			if address, isOther := urls[a.master]; isOther {
				a.result, a.err = ask(ctx, client, address, query)
				return
			}
			a.result, a.err = own(ctx)
		})
	}
	group.Wait()
	return merge(answers), nil
}

// asUser returns a round tripper that sends requests with the identity of a user.
func asUser(sender user.Info, through http.RoundTripper) http.RoundTripper {
	if sender == nil {
		sender = &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	}
	return transport.NewAuthProxyRoundTripper(sender.GetName(), sender.GetUID(), sender.GetGroups(), sender.GetExtra(), through)
}

// ask searches the log of another master.
func ask(ctx context.Context, client *http.Client, address string, query url.Values) (result Result, err error) {
	values := url.Values{localParameter: {"true"}}
	for name := range query {
		values.Set(name, query.Get(name))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+Path+"?"+values.Encode(), nil)
	if err != nil {
		return result, err
	}
	response, err := client.Do(r)
	if err != nil {
		return result, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return result, err
	}
	if response.StatusCode != http.StatusOK {
		return result, fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	return result, json.Unmarshal(body, &result)
}

// merge returns the newest events of all answers.
func merge(answers []answer) Result {
	merged := Result{Enabled: true, Events: []Event{}, Complete: true}
	for _, a := range answers {
		switch {
		case a.err != nil:
			merged.Missing = append(merged.Missing, Missing{a.master, a.err.Error()})
		case !a.result.Enabled:
			merged.Missing = append(merged.Missing, Missing{a.master, "its audit log is disabled"})
		}
		for _, event := range a.result.Events {
			event.Master = a.master
			merged.Events = append(merged.Events, event)
		}
		merged.Complete = merged.Complete && (a.err != nil || a.result.Complete || !a.result.Enabled)
	}
	merged.Enabled = slices.ContainsFunc(answers, func(a answer) bool { return a.err != nil || a.result.Enabled })
	slices.SortFunc(merged.Missing, func(a, b Missing) int { return cmp.Compare(a.Master, b.Master) })
	slices.SortStableFunc(merged.Events, func(a, b Event) int { return b.Time.Compare(a.Time) })
	if len(merged.Events) > maxEvents {
		merged.Events, merged.Complete = merged.Events[:maxEvents], false
	}
	return merged
}
