package fairlead

import (
	"context"

	"fairlead.dev/kube-scheduler-plugin/guestsv1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
)

// The two calls of proto/fairlead/guests/v1.
const (
	decideMethod = "/fairlead.guests.v1.Guests/Decide"
	watchMethod  = "/fairlead.guests.v1.Guests/WatchGrants"
)

// client speaks with Fairlead. Without a connection its calls fail at once.
type client struct{ conn *grpc.ClientConn }

func dial(address string) (*client, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return &client{conn}, nil
}

// decide asks about the pod. reservedOn is the node that is reserved for it, if the question is whether it may be bound there.
func (c *client) decide(ctx context.Context, pod *v1.Pod, waitMS uint32, reservedOn string) (*guestsv1.DecideResponse, error) {
	request := &guestsv1.DecideRequest{
		Pod: &guestsv1.Pod{
			Namespace:     pod.Namespace,
			Name:          pod.Name,
			Uid:           string(pod.UID),
			SchedulerName: pod.Spec.SchedulerName,
			Labels:        pod.Labels,
			Annotations:   pod.Annotations,
		},
		WaitMs:     waitMS,
		ReservedOn: reservedOn,
	}
	response := &guestsv1.DecideResponse{}
	if err := c.conn.Invoke(ctx, decideMethod, request, response); err != nil {
		return nil, err
	}
	return response, nil
}

// watch calls granted for each grant, until the stream ends.
func (c *client) watch(ctx context.Context, granted func(*guestsv1.Grant)) error {
	stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, watchMethod)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(&guestsv1.WatchGrantsRequest{}); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		grant := &guestsv1.Grant{}
		if err := stream.RecvMsg(grant); err != nil {
			return err
		}
		granted(grant)
	}
}
