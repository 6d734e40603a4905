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
)

const (
	// look is the time between two looks for endpoints, and tell between two events that say that some are needed.
	look = 200 * time.Millisecond
	tell = 5 * time.Second
)

// errNone says that there are no endpoints.
var errNone = errors.New("it has no endpoints")

// wakes finds endpoints. However many connections wait for a service, one looks and tells for all.
type wakes struct {
	proxy  *Proxy
	flight singleflight.Group
}

// endpoint is one of a service's endpoints. It waits until there is one or ctx ends.
func (w *wakes) endpoint(ctx context.Context, of target) (netip.AddrPort, error) {
	for {
		answer := w.flight.DoChan(fmt.Sprintf("%s %s %s", of.service, of.port, of.protocol), func() (any, error) { return w.wake(ctx, of) })
		select {
		case <-ctx.Done():
			return netip.AddrPort{}, ctx.Err()
		case result := <-answer:
			found, _ := result.Val.([]netip.AddrPort)
			if len(found) > 0 {
				return found[mathrand.IntN(len(found))], nil
			}
			if result.Err != nil && !errors.Is(result.Err, errNone) {
				slog.Error("cannot wake a service", "service", of.service, "err", result.Err)
			}
		}
	}
}

// wake looks for endpoints for a while and tells at first that they are needed. The others that wait try again when ctx of the first one ends.
func (w *wakes) wake(ctx context.Context, of target) ([]netip.AddrPort, error) {
	ctx, stop := context.WithTimeout(ctx, tell)
	defer stop()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	var failure error = errNone
	for told := false; ; {
		found, err := w.proxy.endpoints(ctx, of)
		if err != nil || len(found) > 0 {
			failure = err
		}
		if len(found) > 0 {
			return found, nil
		}
		if err == nil && !told {
			told = true
			if err := w.proxy.tell(ctx, of); err != nil {
				failure = err
			}
		}
		select {
		case <-ctx.Done():
			return nil, failure
		case <-ticker.C:
		}
	}
}

// endpoints are those that a service has now and that take connections.
func (p *Proxy) endpoints(ctx context.Context, of target) (found []netip.AddrPort, err error) {
	list, err := p.Client.DiscoveryV1().EndpointSlices(of.service.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + of.service.Name, ResourceVersion: "0",
	})
	if err != nil {
		return nil, fmt.Errorf("list endpoints: %w", err)
	}
	for _, slice := range list.Items {
		for _, port := range slice.Ports {
			if port.Port == nil || port.Name != nil && *port.Name != of.port || ptr.Deref(port.Protocol, corev1.ProtocolTCP) != of.protocol {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
					continue
				}
				for _, text := range endpoint.Addresses {
					if address, err := netip.ParseAddr(text); err == nil && address.Is4() && rules.Reachable(&slice, address, rules.OfHost) {
						found = append(found, netip.AddrPortFrom(address, uint16(*port.Port)))
					}
				}
			}
		}
	}
	return found, nil
}

// tell says by an event that a service needs pods, which the controller of idle services acts upon.
func (p *Proxy) tell(ctx context.Context, of target) error {
	now := metav1.Now()
	_, err := p.Client.CoreV1().Events(of.service.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: of.service.Namespace, Name: of.service.Name + "." + strings.ToLower(rand.Text())},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: of.service.Namespace, Name: of.service.Name},
		Reason:         idling.NeedPods, Message: fmt.Sprintf("The service-port %s:%s needs pods.", of.service, of.port), Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: "unidling-proxy", Host: p.Host}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("tell that pods are needed: %w", err)
	}
	return nil
}
