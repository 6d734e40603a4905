package masters

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// freeGuesses is the number of wrong passwords that a single master checks before it returns status
// 429 (Too Many Requests).
const freeGuesses = 5

// checkLogins tests that a client that guesses a password through all masters is not faster than a
// client that uses only one master.
func checkLogins(t *testing.T, masters map[string]*kit.Cluster) {
	guesses := 0
	for name, master := range masters {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(master.Config.CAData)
		client := http.Client{Transport: &http.Transport{DialContext: master.Dial, TLSClientConfig: &tls.Config{RootCAs: roots}}}
		for status := http.StatusUnauthorized; status != http.StatusTooManyRequests; {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, master.APIURL()+"/oauth/authorize?client_id=openshift-challenging-client&response_type=token", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("X-CSRF-Token", "1")
			request.SetBasicAuth("ann", "guess")
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			status = response.StatusCode
			switch status {
			case http.StatusUnauthorized:
				guesses++
			case http.StatusTooManyRequests:
			default:
				t.Fatalf("master %s returns status %d", name, status)
			}
		}
		client.CloseIdleConnections()
	}
	if guesses == 0 || guesses >= len(masters)*freeGuesses {
		t.Errorf("the masters checked %d passwords, and one master checks %d", guesses, freeGuesses)
	}
}

// quota limits the number of claims in the project "limited".
const quota = `
apiVersion: v1
kind: Namespace
metadata: {name: limited}
---
apiVersion: quota.openshift.io/v1
kind: ClusterResourceQuota
metadata: {name: limited}
spec:
  selector: {labels: {matchLabels: {kubernetes.io/metadata.name: limited}}}
  quota: {hard: {persistentvolumeclaims: "9"}}
`

// allowedClaims is the limit in quota.
const allowedClaims = 9

// checkQuota tries to exceed a quota with concurrent requests through all masters.
func checkQuota(t *testing.T, masters map[string]*kit.Cluster) {
	first := masters["first"].For(t)
	first.Apply(quota)
	first.WaitFor("usage of the quota", func(context.Context) error {
		used, err := first.TryOC("get", "clusterresourcequota", "limited", "-o", "jsonpath={.status.total.used.persistentvolumeclaims}")
		if err == nil && used != "0" {
			err = fmt.Errorf("it is %q", used)
		}
		return err
	})
	create := func(ctx context.Context, master *kit.Cluster, name string) error {
		none := "" // an empty class, so that no controller creates volumes
		_, err := master.Client.CoreV1().PersistentVolumeClaims("limited").Create(ctx, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &none,
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
			},
		}, metav1.CreateOptions{})
		return err
	}
	expect := func(when string) {
		list, err := first.Client.CoreV1().PersistentVolumeClaims("limited").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) > allowedClaims {
			t.Errorf("%s, there are %d claims, %v; the limit is %d", when, len(list.Items), err, allowedClaims)
		}
	}
	var creators sync.WaitGroup
	for name, master := range masters {
		for i := range allowedClaims {
			creators.Go(func() {
				// Most of these requests exceed the quota.
				_ = create(t.Context(), master, fmt.Sprintf("%s-%d", name, i))
			})
		}
	}
	creators.Wait()
	expect("after concurrent requests")
	// Neither a request that fails after its reservation nor a deleted claim may use up the quota.
	for name, master := range masters {
		if err := first.Client.CoreV1().PersistentVolumeClaims("limited").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		for i := range allowedClaims {
			claim := fmt.Sprintf("further-%s-%d", name, i)
			master.For(t).WaitFor("claim "+claim, func(ctx context.Context) error {
				if err := create(ctx, master, claim); !apierrors.IsAlreadyExists(err) {
					return err
				}
				return nil
			})
		}
		expect("through master " + name)
	}
	first.OC("delete", "clusterresourcequota/limited", "namespace/limited", "--wait=false")
}
