package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// measureLogins logs in as the tenant, as `oc login` does, with two concurrent logins. It returns
// the tokens.
func (t *tenantFixture) measureLogins(ctx context.Context, password string) ([]string, error) {
	anonymous := rest.AnonymousClientConfig(t.config)
	anonymous.Dial = t.host.Dial
	transport, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	tokens, problems := make([]string, logins), make([]error, logins)
	start := time.Now()
	var working sync.WaitGroup
	for worker := range 2 {
		working.Go(func() {
			for i := worker; i < logins; i += 2 {
				tokens[i], problems[i] = login(ctx, client, t.config.Host, strings.TrimSpace(password))
			}
		})
	}
	working.Wait()
	t.result.loginRate = logins / time.Since(start).Seconds()
	return tokens, errors.Join(problems...)
}

// login requests a token with the implicit grant of the challenging client. The token is in the
// fragment of the redirect URI.
func login(ctx context.Context, client *http.Client, server, password string) (token string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/oauth/authorize?client_id=openshift-challenging-client&response_type=token", nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("X-CSRF-Token", "1")
	request.SetBasicAuth(tenant, password)
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // read the body, so that the connection is reused
	location, err := response.Location()
	if err != nil {
		return "", fmt.Errorf("log in: %s: %w", response.Status, err)
	}
	values, err := url.ParseQuery(location.Fragment)
	if err == nil && values.Get("access_token") == "" {
		err = fmt.Errorf("log in: no token (%s)", values.Get("error"))
	}
	return values.Get("access_token"), err
}

// measureTokens requests the version with a client certificate, with new tokens, and with the same
// token repeatedly.
func (t *tenantFixture) measureTokens(ctx context.Context, tokens []string) error {
	anonymous := rest.AnonymousClientConfig(t.config)
	anonymous.Dial, anonymous.QPS = t.host.Dial, -1
	plain, err := kubernetes.NewForConfig(anonymous)
	if err != nil {
		return err
	}
	ask := func(client rest.Interface, token string) (time.Duration, error) {
		request := client.Get().AbsPath("/version")
		if token != "" {
			request.SetHeader("Authorization", "Bearer "+token)
		}
		start := time.Now()
		_, err := request.DoRaw(ctx)
		return time.Since(start), err
	}
	if _, err := ask(plain.RESTClient(), tokens[0]+"x"); !apierrors.IsUnauthorized(err) {
		return fmt.Errorf("use a wrong token: %w", err)
	}
	for i := range tokenReads {
		took, err := ask(t.client.RESTClient(), "")
		if err != nil {
			return err
		}
		t.result.certificate = append(t.result.certificate, took)
		if i < len(tokens) {
			if took, err = ask(plain.RESTClient(), tokens[i]); err != nil {
				return err
			}
			t.result.miss = append(t.result.miss, took)
		}
		if took, err = ask(plain.RESTClient(), tokens[0]); err != nil {
			return err
		}
		t.result.hit = append(t.result.hit, took)
	}
	return nil
}

// measureSCC creates pods as the tenant in dry runs, and reads the duration of SCC admission from
// the server's metrics.
func (t *tenantFixture) measureSCC(ctx context.Context, user *rest.Config) error {
	project := projectName(0)
	if err := t.waitObjects(ctx, 0); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := t.client.CoreV1().ServiceAccounts(project).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(user)
	if err != nil {
		return err
	}
	create := func(i int) error {
		_, err := client.CoreV1().Pods(project).Create(ctx, pausePod(fmt.Sprintf("pod-%d", i)), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	// Wait until admission accepts a pod, because admission's caches of projects and service
	// accounts might be stale.
	var refusal error
	err = poll(ctx, 100*time.Millisecond, func(context.Context) (bool, error) {
		refusal = create(0)
		return refusal == nil, nil
	})
	if err != nil {
		return errors.Join(err, refusal)
	}
	before, _, err := t.admission(ctx)
	if err != nil {
		return err
	}
	for i := range sccPods {
		start := time.Now()
		if err := create(i); err != nil {
			return err
		}
		t.result.pods = append(t.result.pods, time.Since(start))
	}
	after, ok, err := t.admission(ctx)
	if err == nil && !ok {
		err = errors.New("read metrics: no admission plugin SecurityContextConstraint")
	}
	t.result.scc = (after - before) / sccPods
	return err
}

// admission returns the cumulative duration of SCC admission, in seconds.
func (t *tenantFixture) admission(ctx context.Context) (sum float64, found bool, err error) {
	stream, err := t.client.RESTClient().Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return 0, false, err
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), "} ")
		if !ok || !strings.HasPrefix(name, "apiserver_admission_controller_admission_duration_seconds_sum{") || !strings.Contains(name, `SecurityContextConstraint"`) {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, false, err
		}
		sum, found = sum+seconds, true
	}
	return sum, found, lines.Err()
}
