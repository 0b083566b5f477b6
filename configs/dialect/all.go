package dialect

// all is the order of recognition: what tells a dialect for certain comes first, and DeepSpeed, whose keys many others
// borrow, last.
var all = [...]*Dialect{
	Native,
	Torchtune,
	VERL,
	Megatron,
	Accelerate,
	LLMFoundry,
	OLMo,
	Lingua,
	Kohya,
	MindSpeedFSDP2,
	MindSpeedMMFSDP2,
	Nanotron,
	ModelTrainingParallel,
	Torchtitan,
	LitGPT,
	GPTNeoX,
	NeMo,
	LightningCLI,
	Axolotl,
	LLaMAFactory,
	PEFTAdapter,
	HFModelConfig,
	HFTrainingArguments,
	NanoGPT,
	XTuner,
	DeepSpeed,
}
