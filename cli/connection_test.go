package cli

import "testing"

func TestClientDoesNotLimitItsRequests(t *testing.T) {
	flags := connectionFlags("oc")
	*flags.APIServer = "https://master.example.com:8443"
	config, err := flags.ToRESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	if config.QPS >= 0 {
		t.Errorf("the client limits itself to %v requests per second", config.QPS)
	}
}
