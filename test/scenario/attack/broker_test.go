package attack

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestBrokersPlatformCannotNamePrivilegedUsers(t *testing.T) {
	s := tenants(t)
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(s.Config))
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(s.In("openshift-template-service-broker").OC("serviceaccounts", "get-token", "templateservicebroker-client"))
	ask := func(identity string) (int, string) {
		t.Helper()
		const instance = "/brokers/template.openshift.io/v2/service_instances/a7d1bcf4-4ba2-4a2e-b4c6-0d9a3a0f4e12?accepts_incomplete=true"
		request, err := http.NewRequestWithContext(context.Background(), http.MethodDelete, s.Config.Host+instance, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("X-Broker-API-Version", "2.13")
		request.Header.Set("X-Broker-API-Originating-Identity", "kubernetes "+base64.StdEncoding.EncodeToString([]byte(identity)))
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if code, body := ask(`{"username": "alice", "groups": ["system:authenticated"]}`); code != http.StatusGone {
		t.Errorf("for a person: %d %s", code, body)
	}
	for name, identity := range map[string]string{
		`groups \"system:masters\"`:        `{"username": "alice", "groups": ["system:authenticated", "system:masters"]}`,
		`groups \"system:cluster-admins\"`: `{"username": "alice", "groups": ["system:cluster-admins"]}`,
		`users \"system:admin\"`:           `{"username": "system:admin"}`,
		`users \"system:serviceaccount:`:   fmt.Sprintf(`{"username": "system:serviceaccount:%s:default"}`, s.shop),
		`userextras \"root\"`:              `{"username": "alice", "extra": {"level": ["root"]}}`,
	} {
		if code, body := ask(identity); code != http.StatusForbidden || !strings.Contains(body, "may not impersonate "+name) {
			t.Errorf("for %s: %d %s", identity, code, body)
		}
	}
}
