package apiserver

import "k8s.io/client-go/rest"

// Unlimited returns a copy of config without client-side rate limit. Use it for clients, such as
// those of Deps.Loopback, that act for requests which the server limits already.
func Unlimited(config *rest.Config) *rest.Config {
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1
	return unlimited
}
