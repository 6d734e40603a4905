package apiserver

import (
	"errors"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Unlimited returns a copy of config without a client-side rate limit. Use it for clients that act
// on behalf of requests that the server already limits, such as clients that use Deps.Loopback.
func Unlimited(config *rest.Config) *rest.Config {
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1
	return unlimited
}

// connect creates the clients Kube and Dynamic from Loopback.
func (d *Deps) connect() error {
	var errs [2]error
	d.Kube, errs[0] = kubernetes.NewForConfig(Unlimited(d.Loopback))
	d.Dynamic, errs[1] = dynamic.NewForConfig(Unlimited(d.Loopback))
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("create loopback clients: %w", err)
	}
	return nil
}
