package idle

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rules "github.com/slipway-platform/slipway/internal/endpoints"
	"github.com/slipway-platform/slipway/internal/idling"
	"github.com/slipway-platform/slipway/internal/ratelimit"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

const (
	// pollInterval is the interval between two list requests for a service's EndpointSlices.
	// eventInterval is the interval between two NeedPods events for a service.
	pollInterval  = 200 * time.Millisecond
	eventInterval = 5 * time.Second
	// pollRate is the maximum number of list requests per second for the services of a project.
	// pollBurst is the number of additional requests.
	pollRate, pollBurst = 20, 40
)

// errPoliced means that network policies or egress firewalls can restrict a client's traffic.
var errPoliced = errors.New("network policies can restrict the client, so it must connect again")

// errNoEndpoints means that the service has no ready endpoints.
var errNoEndpoints = errors.New("service has no endpoints")

// waker finds endpoints. All connections to a service share one polling loop, and the NeedPods
// events that it creates.
type waker struct {
	proxy  *Proxy
	flight singleflight.Group
	// polls limits the polls for each project, so that no project delays the polls for others.
	polls ratelimit.Limiters[string]
}

func newWaker(p *Proxy) *waker {
	return &waker{proxy: p, polls: ratelimit.Limiters[string]{Rate: pollRate, Burst: pollBurst}}
}

// endpoint returns one of a service's endpoints. It waits until the service has an endpoint or ctx
// is done.
func (w *waker) endpoint(ctx context.Context, tgt target) (netip.AddrPort, error) {
	for {
		result := w.flight.DoChan(fmt.Sprintf("%s %s %s %d", tgt.service, tgt.port, tgt.protocol, tgt.family), func() (any, error) { return w.wake(ctx, tgt) })
		select {
		case <-ctx.Done():
			return netip.AddrPort{}, ctx.Err()
		case res := <-result:
			addrs, _ := res.Val.([]netip.AddrPort)
			if len(addrs) > 0 {
				return addrs[mathrand.IntN(len(addrs))], nil
			}
			if res.Err != nil && !errors.Is(res.Err, errNoEndpoints) {
				slog.Error("cannot unidle service", "service", tgt.service, "error", res.Err)
			}
		}
	}
}

// endpointFor returns one of a service's endpoints for a client. It returns errPoliced if network
// policies can restrict packets from the client to the endpoint.
func (w *waker) endpointFor(ctx context.Context, client netip.Addr, tgt target) (netip.AddrPort, error) {
	endpoint, err := w.endpoint(ctx, tgt)
	if err != nil || w.proxy.Policed == nil {
		return endpoint, err
	}
	policed, err := w.proxy.Policed(ctx, client, endpoint.Addr())
	if err == nil && policed {
		err = errPoliced
	}
	return endpoint, err
}

// wake polls for endpoints for eventInterval and creates one NeedPods event. If the context of the
// first caller is done, the other callers, which share its result, retry.
func (w *waker) wake(ctx context.Context, tgt target) ([]netip.AddrPort, error) {
	ctx, stop := context.WithTimeout(ctx, eventInterval)
	defer stop()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var lastErr error = errNoEndpoints
	for recorded := false; ; {
		if w.polls.At(tgt.service.Namespace, time.Now()).Allow() {
			addrs, err := w.proxy.endpoints(ctx, tgt)
			if err != nil || len(addrs) > 0 {
				lastErr = err
			}
			if len(addrs) > 0 {
				return addrs, nil
			}
			if err == nil && !recorded {
				recorded = true
				if err := w.proxy.recordEvent(ctx, tgt); err != nil {
					lastErr = err
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil, lastErr
		case <-ticker.C:
		}
	}
}

// endpoints returns the service's current ready endpoints.
func (p *Proxy) endpoints(ctx context.Context, tgt target) (addrs []netip.AddrPort, err error) {
	list, err := p.Client.DiscoveryV1().EndpointSlices(tgt.service.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + tgt.service.Name, ResourceVersion: "0",
	})
	if err != nil {
		return nil, fmt.Errorf("list endpoints: %w", err)
	}
	for _, slice := range list.Items {
		for _, port := range slice.Ports {
			if port.Port == nil || port.Name != nil && *port.Name != tgt.port || ptr.Deref(port.Protocol, corev1.ProtocolTCP) != tgt.protocol {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
					continue
				}
				for _, text := range endpoint.Addresses {
					if address, err := netip.ParseAddr(text); err == nil && ipfamily.Of(address) == tgt.family && rules.Reachable(&slice, address, rules.OfHost) {
						addrs = append(addrs, netip.AddrPortFrom(address, uint16(*port.Port)))
					}
				}
			}
		}
	}
	return addrs, nil
}

// recordEvent creates a NeedPods event for a service. The controller for idle services responds to
// the event.
func (p *Proxy) recordEvent(ctx context.Context, tgt target) error {
	const component = "unidling-proxy"
	now := metav1.Now()
	_, err := p.Client.CoreV1().Events(tgt.service.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: tgt.service.Namespace, Name: tgt.service.Name + "." + strings.ToLower(rand.Text())},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: tgt.service.Namespace, Name: tgt.service.Name},
		Reason:         idling.NeedPods, Message: fmt.Sprintf("The service-port %s:%s needs pods.", tgt.service, tgt.port), Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: component, Host: p.Host}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
		// EventTime contains microseconds, because the service can be idled again within the same
		// second.
		EventTime: metav1.NewMicroTime(now.Time), ReportingController: component, ReportingInstance: p.Host, Action: "Unidle",
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create event for needed pods: %w", err)
	}
	return nil
}
