package apiserver

import "k8s.io/client-go/rest"

// Unlimited lifts the own limit of a client, such as that of Deps.Loopback, whose requests are made for others that are limited already.
func Unlimited(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	own.QPS = -1
	return own
}
