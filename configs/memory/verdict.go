package memory

import (
	"errors"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
)

// Verdict says whether a run fits its device.
type Verdict string

// The verdicts.
const (
	Fits      Verdict = "fits"
	Tight     Verdict = "tight" // more than nine tenths of the device, or more than all of it within the bounds of the estimate
	Overflows Verdict = "overflows"
	Unknown   Verdict = "unknown"
)

// tightShare is the share of the device from which a run is tight: the error of the estimate is of that order, and batches
// of uneven length need more than the average one.
const tightShare = 0.92

// Near reports whether the estimate itself is so close to the limit, or beyond it, that a longer batch can end the run; a tight run
// whose bounds alone reach the limit is not.
func (u *Usage) Near(device *catalog.DeviceSpec) bool {
	return float64(u.Needed.Bytes) > tightShare*float64(device.UsableBytes)
}

// Fit compares an estimate with a device. A run overflows only for certain: when its states alone do not fit, or when even
// the lower bound of what it needs does not. It is tight where what the device shows, context, communicators and the waste of the
// allocator included, is more than there is, or the bounds of the need lie on both sides of that: the cache is given back before
// an allocation fails, so that the run can live, or not. It is unknown without a device, and where facts that were not stated decide.
func Fit(u *Usage, device *catalog.DeviceSpec) Verdict {
	if u == nil || device == nil {
		return Unknown
	}
	usable := device.UsableBytes
	switch {
	case u.Static > usable || u.Needed.Low > usable:
		return Overflows
	case len(u.Open) > 0 && u.Needed.High > usable:
		return Unknown
	case u.Near(device), u.Needed.High > usable, u.Total.Bytes > usable:
		return Tight
	}
	return Fits
}

// Report is the whole answer about one plan.
type Report struct {
	Usage   *Usage // nil where a fact is missing without which there is no estimate
	Verdict Verdict
	Missing Missing // what keeps the estimate or the verdict from being known
	AtLeast int64   // what the device must have in the most favourable case of everything open, bytes; 0: not known
}

// Check estimates a plan and compares it with its device. A plan that leaves facts open overflows all the same when even the
// most favourable case of them does. The error is an *catalog.UnknownError where the plan names a model or device that the
// catalogue does not have; Missing then names it too.
func Check(p *plan.Plan) (Report, error) {
	r := Report{Verdict: Unknown}
	u, missing, err := Estimate(p)
	r.Usage, r.Missing = u, missing
	if unknown := (*catalog.UnknownError)(nil); errors.As(err, &unknown) {
		r.Missing.add(unknown.Kind)
		return r, err
	} else if err != nil {
		r.Missing.add(MissingModel)
		return r, err
	}
	if u != nil {
		r.AtLeast, r.Verdict = u.Needed.Low, Fit(u, u.Device)
		switch {
		case u.Device == nil:
			r.Missing.add(MissingDevice)
		case r.Verdict == Unknown:
			r.Missing = u.Open
		}
		return r, nil
	}
	r.AtLeast, _ = LowerBound(p)
	name, named := p.Device.Get()
	if !named {
		r.Missing.add(MissingDevice)
		return r, nil
	}
	device, err := catalog.Device(name)
	if err != nil {
		return r, err
	}
	if r.AtLeast > device.UsableBytes {
		r.Verdict = Overflows
	}
	return r, nil
}
