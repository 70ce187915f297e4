"""Tables as datasets: CSV and Parquet files, and datasets of Hugging Face."""

from ember_ml.data.tables.files import CSVDataset as CSVDataset
from ember_ml.data.tables.files import ParquetDataset as ParquetDataset
from ember_ml.data.tables.hugging_face import HFDataset as HFDataset
from ember_ml.data.tables.hugging_face import HFStream as HFStream
from ember_ml.data.tables.hugging_face import from_hf as from_hf
