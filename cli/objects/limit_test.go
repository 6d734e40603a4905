package objects

import (
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

func TestUnlimitedCopiesConfiguration(t *testing.T) {
	slow := &rest.Config{Host: "https://master.example.com", QPS: 5, RateLimiter: flowcontrol.NewTokenBucketRateLimiter(5, 10)}
	if got := Unlimited(slow); got.QPS >= 0 || got.RateLimiter != nil || got.Host != slow.Host || slow.QPS != 5 {
		t.Errorf("the limit is %v, %v", got.QPS, got.RateLimiter)
	}
}
