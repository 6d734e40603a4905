package objects

import "k8s.io/client-go/rest"

// Unlimited returns a client configuration without client-go's limit of five requests per second,
// for commands that send hundreds. The server's priority levels limit the requests instead.
func Unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil
	return config
}
